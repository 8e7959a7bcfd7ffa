/* Memory that goes back to the system by itself, and objects that grow. */
#define _GNU_SOURCE
#include "check.h"

enum { MOST = 1 << 23 };
static void *objects[MOST];

static void fill(size_t size, size_t bytes) {
    for (size_t i = 0; i < bytes / size; i++) {
        CHECK((objects[i] = malloc(size)));
        memset(objects[i], (int)i, size);
    }
}

static void empty(size_t size, size_t bytes, int shuffled) {
    size_t count = bytes / size;
    unsigned state = 1;
    for (size_t i = count; shuffled && i > 1; i--) {
        state = state * 1664525u + 1013904223u;
        size_t j = state % i;
        void *kept = objects[j];
        objects[j] = objects[i - 1];
        objects[i - 1] = kept;
    }
    for (size_t i = 0; i < count; i++)
        free(objects[i]);
}

/* The most memory that may stay beyond the program's earlier memory and its table of pointers. */
static const size_t MAY_STAY_KIB = 64 * 1024;
/* After frees in any order: 47 MiB on an idle machine, up to 68 beside twelve other programs. */
static const size_t MAY_STAY_SHUFFLED_KIB = 80 * 1024;

static size_t size_asked;

static void goes_back(int shuffled) {
    const size_t bytes = 400 * MIB;
    memset(objects, 0, sizeof objects); /* in memory before the count begins */
    size_t before = rss_kib();
    fill(size_asked, bytes);
    CHECK(rss_kib() >= before + 390 * 1024);
    empty(size_asked, bytes, shuffled);
    fprintf(stderr, "objects of %zu: %zu KiB before, %zu KiB after\n", size_asked, before, rss_kib());
    CHECK(rss_kib() < before + (shuffled ? MAY_STAY_SHUFFLED_KIB : MAY_STAY_KIB));
}

static void in_order(void) { goes_back(0); }
static void shuffled(void) { goes_back(1); }

/* Twenty rounds with other sizes each time: the heap never grows. Memory requested repeatedly may
 * be kept; it is released with the next large object once requests have ended for longer than the
 * demand window. */
static void no_ratchet(void) {
    static const size_t sizes[] = {100, 1000, 300000, 30000, MIB};
    memset(objects, 0, sizeof objects);
    size_t before = rss_kib();
    for (int round = 0; round < 20; round++) {
        size_t size = sizes[round % 5];
        fill(size, 150 * MIB);
        size_t full = rss_kib();
        empty(size, 150 * MIB, round % 2);
        fprintf(stderr, "round %d: %zu KiB full, %zu KiB empty\n", round, full - before, rss_kib() - before);
        CHECK(full < before + 150 * 1024 * 5 / 4 + MAY_STAY_KIB / 2);
    }
    usleep(6500000);
    for (int i = 0; i < 10; i++)
        free(malloc(4 * MIB));
    fprintf(stderr, "at the end: %zu KiB\n", rss_kib() - before);
    CHECK(rss_kib() < before + MAY_STAY_KIB);
}

static void grow(size_t (*next)(size_t), unsigned seed) {
    size_t size = 1000;
    unsigned char *p = malloc(size);
    CHECK(p);
    mark(p, 256 * MIB < size ? 0 : size, seed);
    while (size < 256 * MIB) {
        size_t larger = next(size);
        p = realloc(p, larger);
        CHECK(p && is_marked(p, size, seed, size));
        mark(p, larger, seed);
        size = larger;
    }
    while (size > 1000) { /* and back */
        size_t smaller = size / 3;
        p = realloc(p, smaller);
        CHECK(p && is_marked(p, size, seed, smaller));
        mark(p, smaller, seed);
        size = smaller;
    }
    free(p);
}

static size_t half_more(size_t size) { return size + size / 2; }
static size_t four_mib_more(size_t size) { return size + 4 * MIB; }
static size_t page_more(size_t size) { return size < MIB ? size + 4096 : size * 2; }

static void growth(void) {
    grow(half_more, 1);
    grow(four_mib_more, 2);
    grow(page_more, 3);
    CHECK(rss_kib() < MAY_STAY_KIB);
}

static const struct part PARTS[] = {
    {"in_order", in_order},
    {"shuffled", shuffled},
    {"no_ratchet", no_ratchet},
    {"growth", growth},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    if (argc > 2)
        size_asked = strtoul(argv[2], NULL, 10);
    return run_part(argc, argv, PARTS);
}

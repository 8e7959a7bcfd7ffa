/* Memory that is hardly touched costs only the touched pages; memory that is written everywhere
 * gets hugepages. Arguments: part, size of an object, number of objects, bytes between two touches
 * (mixed: objects from one fully written to the next), `malloc` or `calloc`. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/mman.h>

enum { MOST = 4096 };
static char *objects[MOST];
static size_t size, count, step;
static int zeroed;

/* Metadata, a table of the heap, and the first lines of a report. */
static const size_t BESIDE_KIB = 6 * 1024;

static void *get(size_t bytes) {
    void *p = zeroed ? calloc(1, bytes) : malloc(bytes);
    CHECK(p);
    return p;
}

static size_t huge_kib(void) {
    static char text[4096];
    read_proc("/proc/self/smaps_rollup", text, sizeof text);
    char *at = strstr(text, "AnonHugePages:");
    CHECK(at);
    return strtoul(at + 14, NULL, 10);
}

/* Touches what was not touched yet, and returns in how many pages. */
static size_t touch(char *object, size_t from, size_t to) {
    size_t pages = 0;
    for (size_t at = (from + step - 1) / step * step; at < to; at += step, pages++) {
        if (zeroed)
            CHECK(object[at] == 0);
        object[at] = (char)(at / step + 1);
    }
    return pages;
}

static void check(const char *object, size_t bytes) {
    for (size_t at = 0; at < bytes; at += step)
        CHECK(object[at] == (char)(at / step + 1));
}

/* thp=always, or a system that gives hugepages everywhere, may cost all allocated memory. */
static void costs(size_t before, size_t pages, size_t asked) {
    const char *options = getenv("CRATON_OPTIONS");
    int always = options && strstr(options, "thp=always");
    size_t grown = rss_kib() - before;
    size_t most = always ? asked / KIB * 11 / 10 + 32 * 1024 : pages * 4 * 12 / 10 + BESIDE_KIB;
    fprintf(stderr, "%zu KiB for %zu pages of %zu KiB asked, at most %zu\n", grown, pages, asked / KIB, most);
    CHECK(grown <= most);
}

static void sparse(void) {
    size_t before = rss_kib(), pages = 0;
    for (size_t i = 0; i < count; i++) {
        objects[i] = get(size);
        pages += touch(objects[i], 0, size);
    }
    costs(before, pages, count * size);
    for (size_t i = 0; i < count; i++) {
        check(objects[i], size);
        free(objects[i]);
    }
}

/* Rounds of objects. Every `step`-th is written everywhere, the others in one byte, and all are
 * freed after each round. A later round must not pay for the writes of an earlier one. */
static void mixed(void) {
    enum { ROUNDS = 8 };
    size_t before = rss_kib(), asked = 0, pages = 0;
    for (int round = 1; round <= ROUNDS; round++) {
        asked = pages = 0;
        for (size_t i = 0; i < count; i++) {
            size_t bytes = size + (i % 3 == 1 ? size / 4 : 0);
            int whole = (i + round) % step == 0;
            memset(objects[i] = get(bytes), round, whole ? bytes : 1);
            asked += bytes;
            pages += whole ? bytes / 4096 + 1 : 1;
        }
        /* For objects of up to 2 MiB, 1/8 of the use may be kept in front of the page heap,
         * written. */
        size_t waiting = size <= 2 * MIB ? asked / 8 / 4096 : 0;
        if (round == ROUNDS)
            costs(before, pages + waiting, asked);
        for (size_t i = 0; i < count; i++) {
            CHECK(objects[i][0] == round);
            free(objects[i]);
        }
    }
}

/* Grows by doubling from 64 KiB. */
static void grows_sparse(void) {
    size_t before = rss_kib(), pages = 0, now = 64 * KIB;
    char *p = get(now);
    pages += touch(p, 0, now);
    for (size_t old = now; now < size; old = now) {
        now *= 2;
        CHECK((p = realloc(p, now)));
        check(p, old);
        int clean = zeroed;
        zeroed = 0;
        pages += touch(p, old, now);
        zeroed = clean;
    }
    costs(before, pages, now);
    check(p, now);
    free(p);
}

/* Many objects that double in turn, so that none grows in place: untouched pages are not copied. */
static void grow_sparse_in_turn(void) {
    size_t before = rss_kib(), now = 4 * KIB;
    for (size_t i = 0; i < count; i++)
        objects[i] = get(now);
    for (; now < size; now *= 2)
        for (size_t i = 0; i < count; i++) {
            objects[i][now - 1] = (char)i;
            CHECK((objects[i] = realloc(objects[i], now * 2)));
            for (size_t half = 4 * KIB; half <= now; half *= 2)
                CHECK(objects[i][half - 1] == (char)i);
        }
    size_t grown = rss_kib() - before;
    fprintf(stderr, "%zu KiB for %zu KiB asked\n", grown, count * size / KIB);
    CHECK(grown <= count * size / KIB / 32);
    for (size_t i = 0; i < count; i++)
        free(objects[i]);
}

/* Whether the system gives hugepages on request: not in all modes, nor with fragmented memory. */
static int gives_hugepages(void) {
    size_t before = huge_kib();
    char *p = mmap(NULL, 130 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    int given = madvise(p, 130 * MIB, MADV_HUGEPAGE) == 0;
    memset(p, 1, 130 * MIB);
    given = given && huge_kib() - before >= 120 * 1024;
    munmap(p, 130 * MIB);
    if (!given)
        printf("no hugepages\n");
    return given;
}

/* Long-lived objects that are written everywhere: most of the second half is huge, whatever became
 * of the first. */
static void dense(void) {
    if (!gives_hugepages())
        return;
    size_t before = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == count / 2)
            before = huge_kib();
        memset(objects[i] = get(size), 1, size);
    }
    size_t half = (count - count / 2) * size / KIB;
    fprintf(stderr, "%zu KiB of %zu are huge\n", huge_kib() - before, half);
    CHECK(huge_kib() - before >= half / 2);
    for (size_t i = 0; i < count; i++)
        free(objects[i]);
}

/* One object at a time, each freed before the next. */
static void dense_in_turn(void) {
    if (!gives_hugepages())
        return;
    size_t before = huge_kib();
    for (size_t i = 0; i < count; i++) {
        memset(objects[0] = get(size), 1, size);
        if (i + 1 < count)
            free(objects[0]);
    }
    fprintf(stderr, "%zu KiB of %zu are huge\n", huge_kib() - before, size / KIB);
    CHECK(huge_kib() - before >= size / KIB / 2);
    free(objects[0]);
}

static void grows_dense(void) {
    if (!gives_hugepages())
        return;
    size_t before = rss_kib(), huge = huge_kib(), now = MIB;
    char *p = get(now);
    memset(p, 1, now);
    for (size_t old = now; now < size; old = now) {
        now += now / 2;
        CHECK((p = realloc(p, now)));
        CHECK(p[0] == 1 && p[old / 2] == 1 && p[old - 1] == 1);
        memset(p + old, 1, now - old);
    }
    fprintf(stderr, "%zu KiB of %zu are huge\n", huge_kib() - huge, now / KIB);
    CHECK(rss_kib() - before <= now / KIB * 12 / 10 + BESIDE_KIB && huge_kib() - huge >= now / KIB / 2);
    free(p);
}

int main(int argc, char **argv) {
    CHECK(argc == 6);
    size = strtoul(argv[2], NULL, 10);
    count = strtoul(argv[3], NULL, 10);
    step = strtoul(argv[4], NULL, 10);
    zeroed = strcmp(argv[5], "calloc") == 0;
    CHECK(count <= MOST && step > 0);
    static const struct part parts[] = {{"sparse", sparse},
                                        {"mixed", mixed},
                                        {"grows_sparse", grows_sparse},
                                        {"grow_sparse_in_turn", grow_sparse_in_turn},
                                        {"dense", dense},
                                        {"dense_in_turn", dense_in_turn},
                                        {"grows_dense", grows_dense},
                                        {NULL, NULL}};
    return run_part(argc, argv, parts);
}

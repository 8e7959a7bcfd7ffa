/* A cancelled thread ends at cancellation points. It never ends inside malloc, which would keep its
 * locks. Argument: part. */
#define _GNU_SOURCE
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <time.h>

static volatile int steps;

/* Calls every function that may make a system call, with a cancellation pending from the start. */
static void *pending(void *unused) {
    (void)unused;
    static void *kept[400];
    pthread_cancel(pthread_self());
    for (size_t size = 1; size <= 64 * MIB; size = size * 2 + 1) {
        size_t n = size < 100 * KIB ? 400 : 4;
        for (size_t i = 0; i < n; i++)
            CHECK((kept[i] = i % 3 == 0 ? calloc(1, size) : malloc(size)));
        for (size_t i = 0; i < n; i++) {
            memset(kept[i], 1, size);
            CHECK((kept[i] = realloc(kept[i], size + size / 2)));
        }
        for (size_t i = 0; i < n; i++)
            free(kept[i]);
        steps++;
    }
    void *aligned;
    CHECK(posix_memalign(&aligned, 2 * MIB, 3 * MIB) == 0);
    free(aligned);
    malloc_trim(0);
    struct mallinfo2 info = mallinfo2();
    CHECK(info.arena > 0);
    malloc_stats();
    CHECK(malloc(SIZE_MAX / 4) == NULL);
    steps++;
    pthread_testcancel();
    steps = -1;
    return NULL;
}

static void ends_where_it_may(void) {
    for (int turn = 0; turn < rounds(2, 20); turn++) {
        pthread_t thread;
        void *result;
        steps = 0;
        CHECK(pthread_create(&thread, NULL, pending, NULL) == 0);
        CHECK(pthread_join(thread, &result) == 0);
        CHECK(result == PTHREAD_CANCELED && steps == 27);
    }
}

enum { SLOTS = 16, THREADS = 4 };

struct work {
    pthread_t thread;
    unsigned random;
    void *slots[SLOTS];
};

static unsigned next(unsigned *random) { return *random = *random * 1664525 + 1013904223; }

static void give_all(void *arg) {
    struct work *work = arg;
    for (int i = 0; i < SLOTS; i++) {
        free(work->slots[i]);
        work->slots[i] = NULL;
    }
}

static void *any_sizes(void *arg) {
    struct work *work = arg;
    unsigned random = work->random;
    pthread_cleanup_push(give_all, work);
    for (;;) {
        unsigned draw = next(&random) >> 8;
        void **slot = &work->slots[draw % SLOTS];
        size_t size = (size_t)1 << (draw / SLOTS % 24);
        if (draw & 1 << 20)
            size = 1 + draw % 1024;
        void *object = draw & 1 << 21 ? realloc(*slot, size) : (free(*slot), *slot = NULL, calloc(1, size));
        CHECK((*slot = object));
        *(volatile char *)object = 1;
        pthread_testcancel();
    }
    pthread_cleanup_pop(1);
    return NULL;
}

/* Threads that are cancelled after a moment; the heap works to the end. */
static void at_random(void) {
    static struct work works[THREADS];
    unsigned random = 1;
    int all = rounds(2000, 10000);
    for (int cancelled = 0; cancelled < all; cancelled += THREADS) {
        for (int i = 0; i < THREADS; i++) {
            works[i].random = next(&random);
            CHECK(pthread_create(&works[i].thread, NULL, any_sizes, &works[i]) == 0);
        }
        struct timespec moment = {0, next(&random) >> 16};
        nanosleep(&moment, NULL);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_cancel(works[i].thread) == 0);
        for (int i = 0; i < THREADS; i++) {
            void *result;
            CHECK(pthread_join(works[i].thread, &result) == 0 && result == PTHREAD_CANCELED);
        }
    }
}

int main(int argc, char **argv) {
    static const struct part parts[] = {{"ends_where_it_may", ends_where_it_may}, {"at_random", at_random}, {NULL, NULL}};
    return run_part(argc, argv, parts);
}

/* Threads that start and stop, and objects that one allocates and another frees. */
#define _GNU_SOURCE
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 64, ROUNDS = 20, OBJECTS = 400, SLOTS = 1 << 14 };

static _Atomic(void *) slots[SLOTS];
static pthread_barrier_t together;

static unsigned next_random(unsigned *state) { return *state = *state * 1664525u + 1013904223u; }

static size_t some_size(unsigned r) { return r % 64 == 0 ? r % 200000 : r % 8 == 0 ? r % 5000 : r % 300; }

/* Each object begins with its size, and ends with the low byte of it. */
static void *make(size_t size) {
    size = size < 16 ? 16 : size;
    unsigned char *p = malloc(size);
    CHECK(p);
    memcpy(p, &size, sizeof size);
    p[size - 1] = (unsigned char)size;
    return p;
}

static void release(void *object) {
    if (!object)
        return;
    size_t size;
    memcpy(&size, object, sizeof size);
    CHECK(size >= 16 && size < 200000 && ((unsigned char *)object)[size - 1] == (unsigned char)size);
    free(object);
}

static void *exchange(void *arg) {
    unsigned state = (unsigned)(uintptr_t)arg;
    void *own[64] = {0};
    for (int i = 0; i < OBJECTS * 10; i++) {
        unsigned r = next_random(&state) >> 4;
        void *object = make(some_size(r));
        if (r % 3 == 0) {
            release(own[r % 64]);
            own[r % 64] = object;
        } else { /* another thread frees it */
            release(atomic_exchange(&slots[next_random(&state) >> 18], object));
        }
    }
    for (int i = 0; i < 64; i++)
        release(own[i]);
    return NULL;
}

static void empty_slots(void) {
    for (int i = 0; i < SLOTS; i++)
        release(atomic_exchange(&slots[i], NULL));
}

static void start_and_stop(void) {
    size_t at_round_5 = 0;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t threads[THREADS];
        for (uintptr_t i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, exchange, (void *)(i * 7919 + (uintptr_t)round + 1)) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        empty_slots();
        if (round == 5)
            at_round_5 = rss_kib();
    }
    size_t end = rss_kib();
    printf("%zu KiB after 6 rounds, %zu KiB at the end\n", at_round_5, end);
    /* The program has some 35 MiB at a time; the schedule of threads decides where. 14 rounds that
     * each kept the remains of one would be far beyond. */
    CHECK(end <= at_round_5 + 64 * 1024);
    CHECK(end <= 160 * 1024);
}

static void *one_object(void *arg) {
    (void)arg;
    void *p[200];
    for (int i = 0; i < 200; i++)
        p[i] = malloc((size_t)i * 10);
    for (int i = 0; i < 200; i++)
        free(p[i]);
    return NULL;
}

/* One thread after the other: each inherits the previous one's memory. */
static void one_after_the_other(void) {
    size_t early = 0;
    for (int i = 0; i < 5000; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, one_object, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        if (i == 500)
            early = rss_kib();
    }
    CHECK(rss_kib() <= early + 2 * 1024);
}

static void *idle(void *arg) {
    one_object(arg);
    pthread_barrier_wait(&together); /* all are there */
    pthread_barrier_wait(&together); /* the main thread has looked */
    return NULL;
}

/* Exactly this many threads besides the main one allocate at the same time. */
static void count_them(void) {
    pthread_t threads[THREADS];
    pthread_barrier_init(&together, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, idle, NULL) == 0);
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* A producer whose objects only the consumer frees, many times what the process may keep. */
static void *produce(void *arg) {
    (void)arg;
    for (unsigned i = 0; i < 3000000; i++) {
        void *object = make(16 + i % 200);
        void *none = NULL;
        while (!atomic_compare_exchange_strong(&slots[i % 1024], &none, object)) {
            none = NULL;
            sched_yield();
        }
    }
    return NULL;
}

static void *consume(void *arg) {
    (void)arg;
    for (unsigned i = 0; i < 3000000; i++) {
        void *object;
        while (!(object = atomic_exchange(&slots[i % 1024], NULL)))
            sched_yield();
        release(object);
    }
    return NULL;
}

static void one_way(void) {
    pthread_t a, b;
    CHECK(pthread_create(&a, NULL, produce, NULL) == 0 && pthread_create(&b, NULL, consume, NULL) == 0);
    CHECK(pthread_join(a, NULL) == 0 && pthread_join(b, NULL) == 0);
    printf("%zu KiB\n", rss_kib());
    CHECK(rss_kib() < 64 * 1024);
}

/* Objects outlive the thread that allocated them. */
static void *leave_behind(void *arg) {
    void **place = arg;
    for (int i = 0; i < OBJECTS; i++)
        place[i] = make((size_t)i * 37 % 3000);
    return NULL;
}

static void outlive(void) {
    static void *left[THREADS][OBJECTS];
    for (int round = 0; round < 10; round++) {
        pthread_t threads[THREADS];
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_create(&threads[i], NULL, leave_behind, left[i]) == 0);
        for (int i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        for (int i = 0; i < THREADS; i++)
            for (int j = 0; j < OBJECTS; j++)
                release(left[i][j]);
    }
    CHECK(rss_kib() < 128 * 1024);
}

/* The smallest stack that a thread may have: the allocator's frames must fit beside the program's.
 */
static void *on_a_small_stack(void *arg) {
    for (size_t n = 1; n <= 64 * MIB; n = n * 3 / 2 + 1) {
        unsigned char *p = malloc(n);
        CHECK(p);
        p[0] = p[n - 1] = 1;
        CHECK((p = realloc(p, n + n / 2)));
        free(p);
        CHECK((p = calloc(1, n)));
        free(p);
        CHECK((p = aligned_alloc(64, n)));
        free(p);
    }
    malloc_trim(0);
    return arg;
}

static void small_stacks(void) {
    pthread_attr_t attributes;
    long least = sysconf(_SC_THREAD_STACK_MIN);
    CHECK(least > 0 && pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)least) == 0);
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, on_a_small_stack, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static void *until_cancelled(void *arg) {
    void *p[50] = {0};
    for (unsigned i = 1;; i++) {
        free(p[i % 50]);
        CHECK((p[i % 50] = malloc(i % 3000 + 1)));
        if (i % 1000 == 0) {
            for (int j = 0; j < 50; j++) {
                free(p[j]);
                p[j] = NULL;
            }
            pthread_testcancel();
        }
    }
    return arg;
}

static void cancelled(void) {
    size_t early = 0;
    for (int round = 0; round < 200; round++) {
        pthread_t threads[8];
        for (int i = 0; i < 8; i++)
            CHECK(pthread_create(&threads[i], NULL, until_cancelled, NULL) == 0);
        for (int i = 0; i < 8; i++) {
            void *how;
            CHECK(pthread_cancel(threads[i]) == 0 && pthread_join(threads[i], &how) == 0);
            CHECK(how == PTHREAD_CANCELED);
        }
        if (round == 50)
            early = rss_kib();
    }
    CHECK(rss_kib() <= early + 16 * 1024);
}

static const struct part PARTS[] = {
    {"small_stacks", small_stacks},
    {"cancelled", cancelled},
    {"start_and_stop", start_and_stop},
    {"one_after_the_other", one_after_the_other},
    {"count_them", count_them},
    {"one_way", one_way},
    {"outlive", outlive},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

/* craton_cache_*: object caches, under threads, forks and limits too. */
#define _GNU_SOURCE
#include "../../../crates/preload/include/craton.h"
#include "check.h"
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { MAGIC = 0x5a5a1234 };

/* An object that its constructor makes once. */
struct made {
    uint64_t magic;
    pthread_mutex_t lock;
    struct made *self;
    uint64_t uses;
};

static _Atomic long constructed, destroyed;
static _Atomic long fail_in = -1;

static int construct(void *object, void *argument) {
    struct made *made = object;
    if (fail_in >= 0 && fail_in-- == 0)
        return 1;
    CHECK(argument == &constructed);
    *made = (struct made){.magic = MAGIC, .self = made};
    pthread_mutex_init(&made->lock, NULL);
    constructed++;
    return 0;
}

static void end(void *object, void *argument) {
    struct made *made = object;
    CHECK(argument == &constructed && made->magic == MAGIC && made->self == made);
    pthread_mutex_destroy(&made->lock);
    made->magic = 0;
    destroyed++;
}

static struct craton_cache_options plain(const char *name, size_t bytes) {
    return (struct craton_cache_options){.size = sizeof(struct craton_cache_options), .name = name, .object_size = bytes};
}

static struct craton_cache_options of_made(const char *name) {
    struct craton_cache_options options = plain(name, sizeof(struct made));
    options.constructor = construct;
    options.destructor = end;
    options.argument = &constructed;
    return options;
}

static craton_cache *create(struct craton_cache_options options) {
    craton_cache *cache = craton_cache_create(&options);
    CHECK(cache);
    return cache;
}

static struct craton_cache_stats counts(craton_cache *cache) {
    struct craton_cache_stats stats;
    CHECK(craton_cache_stats(cache, &stats, sizeof stats) == 0 && stats.version == 1);
    return stats;
}

static uint64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Objects of all sizes and alignments, with and without a constructor, are distinct and keep their
 * contents. */
static int mark_all(void *object, void *size) {
    mark(object, *(size_t *)size, 77);
    return 0;
}

static void objects(void) {
    enum { N = 300 };
    static void *out[N];
    static const size_t SIZES[] = {1, 7, 8, 16, 24, 40, 48, 56, 64, 96, 100, 200, 448, 512, 1000, 2000, 4096, 5000, 10000, 70000, 1 << 20};
    for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++)
        for (size_t align = 0; align <= 4096; align = align ? align * 8 : 8)
            for (int built = 0; built < 2; built++)
                for (unsigned flags = 0; flags < 4; flags++) {
                    size_t size = SIZES[i], n = size > 100000 ? 5 : size > 5000 ? 40 : N;
                    struct craton_cache_options options = plain("objects", size);
                    options.align = align;
                    options.flags = flags;
                    options.argument = &size;
                    options.constructor = built ? mark_all : NULL;
                    craton_cache *cache = create(options);
                    for (int round = 0; round < 3; round++) {
                        for (size_t k = 0; k < n; k++) {
                            CHECK((out[k] = craton_cache_alloc(cache)) && (uintptr_t)out[k] % (align ? align : 8) == 0);
                            CHECK(!built || is_marked(out[k], size, 77, size));
                            mark(out[k], size, (unsigned)k);
                        }
                        CHECK(counts(cache).in_use == n);
                        for (size_t k = 0; k < n; k++) {
                            CHECK(is_marked(out[k], size, (unsigned)k, size));
                            mark(out[k], size, 77);
                            craton_cache_free(cache, out[k]);
                        }
                    }
                    struct craton_cache_stats s = counts(cache);
                    CHECK(s.in_use == 0 && s.allocations == 3 * n && s.object_bytes == size && s.buffer_bytes >= size);
                    CHECK(s.slabs == s.partial + s.complete + s.full && s.memory_bytes >= s.slabs * 8192);
                    CHECK(craton_cache_destroy(cache) == 0);
                }
}

/* An object stays constructed while it is free, and is destroyed before its memory is freed. */
static void states(void) {
    enum { N = 1000 };
    static struct made *out[N];
    craton_cache *cache = create(of_made("states"));
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < N; i++) {
            CHECK((out[i] = craton_cache_alloc(cache)) && out[i]->magic == MAGIC && out[i]->self == out[i]);
            out[i]->uses++;
        }
        for (int i = 0; i < N; i++)
            craton_cache_free(cache, out[i]);
    }
    struct craton_cache_stats s = counts(cache);
    /* The rest of a slab may be constructed before freed objects are reused. */
    CHECK(constructed >= N && constructed < 2 * N && s.constructed == (uint64_t)constructed);
    CHECK(destroyed == 0 && s.allocations == 10 * N && s.in_use == 0);
    long before = constructed;
    CHECK(craton_cache_reap(cache) >= N * sizeof(struct made) / 2);
    s = counts(cache);
    CHECK(destroyed == before && s.destroyed == (uint64_t)before && s.total == 0 && s.slabs == 0);
    CHECK((out[0] = craton_cache_alloc(cache)) && constructed == before + 1);
    errno = 0;
    CHECK(craton_cache_destroy(cache) == -1 && errno == EBUSY);
    craton_cache_free(cache, out[0]);
    craton_cache_free(cache, NULL);
    CHECK(craton_cache_destroy(cache) == 0 && constructed == destroyed);
    CHECK(craton_cache_destroy(NULL) == 0);
}

/* A constructor that fails leaves nothing behind. */
static void failures(void) {
    craton_cache *cache = create(of_made("failures"));
    for (int i = 0; i < 100; i++) {
        fail_in = 0;
        errno = 0;
        CHECK(!craton_cache_alloc(cache) && errno == ECANCELED);
    }
    struct craton_cache_stats s = counts(cache);
    CHECK(s.constructor_failures == 100 && s.failures == 100 && s.allocations == 0);
    CHECK(s.in_use == 0 && s.slabs <= 1 && s.constructed == 0);
    fail_in = 3;
    errno = 0;
    CHECK(craton_cache_prefill(cache, 10) == -1 && errno == ECANCELED && counts(cache).reserved == 0 && constructed == 3);
    fail_in = -1;
    CHECK(craton_cache_prefill(cache, 10) == 0 && counts(cache).reserved == 10 && constructed == 10);
    CHECK(craton_cache_destroy(cache) == 0 && constructed == destroyed);
}

static craton_cache *own;

static int ask_own(void *object, void *argument) {
    (void)object, (void)argument;
    errno = 0;
    CHECK(!craton_cache_alloc(own) && errno == EDEADLK);
    CHECK(!craton_cache_alloc_wait(own, 1000) && errno == EDEADLK);
    CHECK(craton_cache_prefill(own, 10) == -1 && errno == EDEADLK);
    CHECK(craton_cache_destroy(own) == -1 && errno == EDEADLK);
    CHECK(craton_cache_reap(own) == 0 && errno == EDEADLK);
    /* Another cache, and malloc, serve it. */
    craton_cache *other = create(plain("other", 100));
    void *p = craton_cache_alloc(other), *q = malloc(100);
    CHECK(p && q);
    craton_cache_free(other, p);
    free(q);
    CHECK(craton_cache_destroy(other) == 0);
    return 0;
}

static void recursion(void) {
    struct craton_cache_options options = plain("recursion", 100);
    options.constructor = ask_own;
    own = create(options);
    void *first = craton_cache_alloc(own);
    CHECK(first);
    craton_cache_free(own, first);
    for (int i = 0; i < 100; i++)
        CHECK(craton_cache_alloc(own));
}

static void bad_options(void) {
    struct craton_cache_options good = plain("good", 100), bad;
    errno = 0;
    CHECK(!craton_cache_create(NULL) && errno == EINVAL);
#define BAD(change)                                                                                               \
    do {                                                                                                          \
        bad = good;                                                                                               \
        change;                                                                                                   \
        errno = 0;                                                                                                \
        CHECK(!craton_cache_create(&bad) && errno == EINVAL);                                                     \
    } while (0)
    BAD(bad.size = sizeof bad - 1);
    BAD(bad.object_size = 0);
    BAD(bad.object_size = (1 << 20) + 1);
    BAD(bad.object_size = SIZE_MAX);
    BAD(bad.align = 3);
    BAD(bad.align = 2 << 20);
    BAD(bad.flags = 4);
    BAD(bad.destructor = end);
    BAD(bad.name = "a name of thirty-two bytes, 12345");
    BAD(bad.name = "no \xff UTF-8");
    BAD(bad.name = "a \"quote\"");
    BAD(bad.name = "a\nline");
    BAD(bad.name = "a:b");
    BAD(bad.name = "a+b");
    BAD(bad.name = "a,b");
    BAD(bad.name = "a=b");
    BAD(bad.name = "64");
    BAD(bad.name = "malloc");
    BAD(bad.name = "a\xe2\x80\xae" "b"); /* U+202E turns what follows around */
    bad = good;
    bad.name = "Ärmel – größer";
    craton_cache *cache = create(bad);
    CHECK(strcmp(counts(cache).name, bad.name) == 0);
    struct craton_cache_stats s;
    errno = 0;
    CHECK(craton_cache_stats(cache, &s, sizeof s - 1) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(craton_cache_stats(cache, &s, SIZE_MAX) == -1 && errno == EINVAL);
    CHECK(craton_cache_stats(cache, &s, 4097) == -1);
    /* A newer program's struct is longer: fields that the library does not know are 0, and nothing
     * behind it is written. */
    struct {
        struct craton_cache_stats known;
        uint64_t newer[3], behind;
    } longer;
    memset(&longer, 0xff, sizeof longer);
    CHECK(craton_cache_stats(cache, &longer.known, sizeof longer - 8) == 0 && longer.known.version == 1);
    CHECK(!longer.newer[0] && !longer.newer[1] && !longer.newer[2] && longer.behind == UINT64_MAX);
    CHECK(craton_cache_destroy(cache) == 0);
}

static int reclaimed;
static void *to_give;
static void reclaim(void *argument) {
    reclaimed++;
    if (to_give)
        craton_cache_free(*(craton_cache **)argument, to_give);
    to_give = NULL;
}

static void *give_later(void *object) {
    struct timespec t = {0, 50000000};
    nanosleep(&t, NULL);
    craton_cache_free(own, object);
    return NULL;
}

/* A limit holds, and a free wakes a waiting request. */
static void limits(void) {
    enum { N = 50 };
    void *out[N];
    struct craton_cache_options options = plain("limits", 64);
    options.limit_objects = N;
    options.reclaim = reclaim;
    options.argument = &own;
    own = create(options);
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < N; i++)
            CHECK((out[i] = craton_cache_alloc(own)));
        errno = 0;
        CHECK(!craton_cache_alloc(own) && errno == ENOMEM && reclaimed > 0);
        uint64_t before = now_ms();
        CHECK(!craton_cache_alloc_wait(own, 30) && errno == ETIMEDOUT && now_ms() - before >= 20);
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, give_later, out[0]) == 0);
        CHECK((out[0] = craton_cache_alloc_wait(own, 60000)));
        CHECK(now_ms() - before < 50000 && pthread_join(thread, NULL) == 0);
        to_give = out[1];
        CHECK((out[1] = craton_cache_alloc(own)) && !to_give);
        CHECK(counts(own).in_use == N && counts(own).failures == 2 * (uint64_t)(turn + 1));
        for (int i = 0; i < N; i++)
            craton_cache_free(own, out[i]);
    }
    errno = 0;
    CHECK(craton_cache_prefill(own, N + 1) == -1 && errno == ENOMEM);
    CHECK(craton_cache_destroy(own) == 0);
    options = plain("bytes", 1000);
    options.limit_bytes = 100000;
    craton_cache *cache = create(options);
    size_t n = 0;
    while (craton_cache_alloc(cache))
        n++;
    CHECK(n > 50 && n <= 104 && counts(cache).memory_bytes <= 106496);
    /* Whatever the limit leaves for magazines, an impossible reservation is refused, and existing
     * objects serve. */
    for (options.limit_bytes = 8192; options.limit_bytes <= 10 * 8192; options.limit_bytes += 8192) {
        options.object_size = 64;
        cache = create(options);
        errno = 0;
        CHECK(craton_cache_prefill(cache, 20000) == -1 && errno == ENOMEM && counts(cache).reserved == 0);
        CHECK(craton_cache_alloc(cache) && counts(cache).in_use == 1);
    }
}

/* Reserved objects exist without memory, and stay. */
static void prefilled(void) {
    enum { N = 2000 };
    static void *out[N];
    craton_cache *cache = create(of_made("prefilled"));
    CHECK(craton_cache_prefill(cache, N) == 0 && constructed == N);
    craton_cache_reap(cache);
    CHECK(counts(cache).total >= N && counts(cache).reserved == N && constructed - destroyed >= N);
    struct rlimit none = {0, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &none) == 0);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; i < N; i++)
            CHECK((out[i] = craton_cache_alloc(cache)));
        for (int i = 0; i < N; i++)
            craton_cache_free(cache, out[i]);
    }
    CHECK(counts(cache).failures == 0 && craton_cache_prefill(cache, 0) == 0);
    craton_cache_reap(cache);
    CHECK(counts(cache).total == 0 && destroyed == constructed);
}

/* What no machine has is refused before any of it is taken. */
static void prefilled_beyond(void) {
    craton_cache *cache = create(plain("beyond", 8));
    for (size_t objects = SIZE_MAX; objects >= (size_t)1 << 50; objects /= 16) {
        errno = 0;
        CHECK(craton_cache_prefill(cache, objects) == -1 && errno == ENOMEM);
    }
    CHECK(counts(cache).total == 0 && craton_cache_destroy(cache) == 0);
}

enum { THREADS = 8, SHARED = 64 };
static craton_cache *shared_cache;
static void *_Atomic shared_slots[SHARED];

static void *churn(void *argument) {
    unsigned seed = (unsigned)(uintptr_t)argument;
    for (int i = 0; i < 30000; i++) {
        seed = seed * 1103515245 + 12345;
        struct made *made = craton_cache_alloc(shared_cache);
        CHECK(made && made->magic == MAGIC && made->self == made);
        CHECK(pthread_mutex_trylock(&made->lock) == 0);
        made->uses++;
        CHECK(pthread_mutex_unlock(&made->lock) == 0);
        /* Another thread frees it, now or later. */
        made = atomic_exchange(&shared_slots[seed / 65536 % SHARED], made);
        if (made)
            craton_cache_free(shared_cache, made);
        if (i % 5000 == 0)
            craton_cache_reap(shared_cache);
        if (i % 997 == 0)
            sched_yield();
    }
    return NULL;
}


static void in_threads(void) {
    pthread_t threads[THREADS];
    shared_cache = create(of_made("threads"));
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    long left = 0;
    for (int i = 0; i < SHARED; i++)
        if (shared_slots[i])
            left++;
    struct craton_cache_stats s = counts(shared_cache);
    CHECK(s.in_use == (uint64_t)left && s.allocations == THREADS * 30000);
    for (int i = 0; i < SHARED; i++)
        craton_cache_free(shared_cache, shared_slots[i]);
    CHECK(craton_cache_destroy(shared_cache) == 0 && constructed == destroyed);
}

/* Threads that wait for the few objects there are. */
static void *borrow(void *argument) {
    (void)argument;
    for (int i = 0; i < 2000; i++) {
        void *object = craton_cache_alloc_wait(shared_cache, 60000);
        CHECK(object);
        if (i % 7 == 0)
            sched_yield();
        craton_cache_free(shared_cache, object);
    }
    return NULL;
}

static void waiting_threads(void) {
    pthread_t threads[THREADS];
    struct craton_cache_options options = of_made("waiting");
    options.limit_objects = 3;
    shared_cache = create(options);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, borrow, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(constructed <= 3 && counts(shared_cache).in_use == 0 && counts(shared_cache).failures == 0);
    CHECK(craton_cache_destroy(shared_cache) == 0);
}

static volatile int stop;

static void *churn_on(void *seed) {
    while (!stop)
        churn(seed);
    return NULL;
}

/* Children can use every cache of their parent, whatever its threads were doing. */
static void in_forks(void) {
    pthread_t threads[3];
    shared_cache = create(of_made("forks"));
    struct made *kept = craton_cache_alloc(shared_cache);
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, churn_on, (void *)(i + 1)) == 0);
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK(kept->magic == MAGIC);
            static struct made *out[500];
            for (int j = 0; j < 500; j++)
                CHECK((out[j] = craton_cache_alloc(shared_cache)) && out[j]->magic == MAGIC);
            for (int j = 0; j < 500; j++)
                craton_cache_free(shared_cache, out[j]);
            craton_cache *mine = create(plain("child", 100));
            CHECK(craton_cache_alloc(mine));
            craton_cache_free(shared_cache, kept);
            craton_cache_reap(shared_cache);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    /* A child that shares this process's memory while it runs. */
    for (int i = 0; i < 10; i++) {
        pid_t child = vfork();
        if (child == 0) {
            void *object = craton_cache_alloc(shared_cache);
            if (object)
                craton_cache_free(shared_cache, object);
            _exit(object ? 0 : 1);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    craton_cache_free(shared_cache, kept);
}

/* Without memory every call fails, and nothing has changed. */
static void no_memory(void) {
    craton_cache *cache = create(plain("no memory", 1 << 16)), *other = create(plain("other", 100));
    CHECK(craton_option_set("hard_limit", "64M") == 0);
    size_t n = 0;
    while (craton_cache_alloc(cache))
        n++;
    CHECK(errno == ENOMEM && n > 100 && n < 1024 && counts(cache).in_use == n);
    struct craton_cache_stats before = counts(cache);
    for (int i = 0; i < 10; i++) {
        errno = 0;
        CHECK(!craton_cache_alloc(cache) && errno == ENOMEM);
        CHECK(!craton_cache_alloc_wait(cache, 15) && errno == ETIMEDOUT);
        CHECK(craton_cache_prefill(cache, n + 10) == -1 && errno == ENOMEM);
    }
    struct craton_cache_stats after = counts(cache);
    CHECK(after.in_use == before.in_use && after.memory_bytes == before.memory_bytes && after.failures == before.failures + 20);
    CHECK(craton_option_set("hard_limit", "none") == 0 && craton_cache_alloc(cache) && craton_cache_alloc(other));
}

/* Objects unused for an interval are freed without a request. */
static void working_set(void) {
    enum { N = 20000 };
    static void *out[N];
    for (int never = 0; never < 2; never++) {
        struct craton_cache_options options = of_made("working set");
        options.working_set_ms = never ? UINT_MAX : 1;
        craton_cache *cache = create(options);
        for (int i = 0; i < N; i++)
            CHECK((out[i] = craton_cache_alloc(cache)));
        for (int i = 0; i < N; i++)
            craton_cache_free(cache, out[i]);
        for (int i = 0; i < 8; i++) {
            struct timespec t = {0, 20000000};
            nanosleep(&t, NULL);
            craton_background_actions();
        }
        struct craton_cache_stats s = counts(cache);
        CHECK(never ? s.total >= N : s.total < N / 10);
        CHECK(s.constructed - s.destroyed <= s.total);
        craton_cache_reap(cache);
        CHECK(counts(cache).total == 0);
        CHECK(craton_cache_destroy(cache) == 0 && constructed == destroyed);
    }
}

/* A release of all memory includes free objects; caches come and go without leaving memory. */
static void come_and_go(void) {
    for (int i = 0; i < 9000; i++) {
        craton_cache *cache = create(plain("short", 100));
        void *object = craton_cache_alloc(cache);
        CHECK(object);
        craton_cache_free(cache, object);
        CHECK(craton_cache_destroy(cache) == 0);
    }
    craton_cache *cache = create(of_made("released"));
    CHECK(craton_cache_prefill(cache, 1000) == 0 && craton_cache_prefill(cache, 0) == 0);
    craton_release();
    CHECK(counts(cache).total == 0 && destroyed == 1000);
    CHECK(craton_cache_destroy(cache) == 0);
    static craton_cache *all[4097];
    int n = 0;
    while (n < 4097) {
        struct craton_cache_options options = plain("many", 100);
        if (!(all[n] = craton_cache_create(&options)))
            break;
        CHECK(craton_cache_alloc(all[n++]));
    }
    CHECK(n == 4096 && errno == ENOMEM);
}

/* Prints the document, for the test to read. */
static void statistics(void) {
    craton_cache *cache = create(of_made("Übung"));
    void *objects[100];
    for (int i = 0; i < 100; i++)
        CHECK((objects[i] = craton_cache_alloc(cache)));
    for (int i = 0; i < 90; i++)
        craton_cache_free(cache, objects[i]);
    for (int i = 0; i < 1000; i++) {
        CHECK((objects[0] = craton_cache_alloc(cache)));
        craton_cache_free(cache, objects[0]);
    }
    size_t size = craton_stats_json(NULL, 0) + 1000;
    char *text = malloc(size);
    CHECK(craton_stats_json(text, size) < size);
    puts(text);
}

static const struct part PARTS[] = {
    {"objects", objects},
    {"states", states},
    {"failures", failures},
    {"recursion", recursion},
    {"bad_options", bad_options},
    {"limits", limits},
    {"prefilled", prefilled},
    {"prefilled_beyond", prefilled_beyond},
    {"in_threads", in_threads},
    {"waiting_threads", waiting_threads},
    {"in_forks", in_forks},
    {"no_memory", no_memory},
    {"working_set", working_set},
    {"come_and_go", come_and_go},
    {"statistics", statistics},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

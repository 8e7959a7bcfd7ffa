/* craton.h: sizes, batches, hints, heaps, options, statistics. The first argument is a part. */
#define _GNU_SOURCE
#include "../../../crates/preload/include/craton.h"
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>

extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

static const size_t SIZES[] = {0, 1, 16, 17, 100, 1000, 1024, 1025, 5000, 32769, 41000, 262144, 262145, MIB, 33 * MIB};
enum { COUNT_OF_SIZES = sizeof SIZES / sizeof *SIZES };

static void good_sizes(void) {
    for (int i = 0; i < COUNT_OF_SIZES; i++) {
        void *p = malloc(SIZES[i]);
        size_t good = craton_good_size(SIZES[i]);
        CHECK(p && good >= SIZES[i] && malloc_usable_size(p) >= good);
        free(p);
        struct craton_sized s = craton_alloc_at_least(SIZES[i]);
        CHECK(s.ptr && s.size >= good && s.size == malloc_usable_size(s.ptr));
        memset(s.ptr, 1, s.size < MIB ? s.size : MIB);
        free_sized(s.ptr, i % 2 ? s.size : SIZES[i]);
        for (size_t align = 1; align <= 4 * MIB; align *= 4) {
            s = craton_aligned_alloc_at_least(align, SIZES[i]);
            CHECK(s.ptr && s.size >= craton_good_size_aligned(SIZES[i], align) && (uintptr_t)s.ptr % align == 0);
            CHECK(malloc_usable_size(s.ptr) == s.size);
            free_aligned_sized(s.ptr, align, SIZES[i]);
        }
    }
    errno = 0;
    CHECK(craton_good_size(SIZE_MAX) == 0 && craton_good_size(PTRDIFF_MAX) == 0);
    struct craton_sized s = craton_alloc_at_least(SIZE_MAX);
    CHECK(!s.ptr && s.size == 0 && errno == ENOMEM);
    errno = 0;
    s = craton_aligned_alloc_at_least(3, 10);
    CHECK(!s.ptr && errno == EINVAL && craton_good_size_aligned(10, 3) == 0);
}

/* free_sized accepts every size that the object can have been requested with. */
static void right_sizes(void) {
    for (size_t size = 0; size < 3000; size++) {
        free_sized(malloc(size), size);
        free_sized(calloc(1, size), size);
        free_sized(realloc(malloc(2 * size), size + 1), size + 1);
        free_sized(realloc(malloc(size / 2), size + 1), size + 1);
        for (size_t align = 1; align <= 8192; align *= 2)
            free_aligned_sized(aligned_alloc(align, size), align, size);
    }
    for (size_t size = 3000; size < 3 * MIB; size += size / 7) {
        free_sized(malloc(size), size);
        free_sized(calloc(1, size), size);
        free_sized(realloc(malloc(2 * size), size), size);
        free_sized(realloc(malloc(size / 3), size), size);
        for (size_t align = 1; align <= MIB; align *= 2)
            free_aligned_sized(aligned_alloc(align, size), align, size);
    }
    free_sized(NULL, 100);
    free_aligned_sized(NULL, 64, 100);
}

static void batches(void) {
    enum { MOST = 5000 };
    static void *objects[MOST + 1];
    for (int i = 0; i < COUNT_OF_SIZES; i++) {
        size_t size = SIZES[i], count = size < 2000 ? MOST : size < 100000 ? 300 : 20;
        objects[count] = &objects[1];
        CHECK(craton_alloc_batch(size, count, objects) == count);
        CHECK(objects[count] == &objects[1]);
        for (size_t j = 0; j < count; j++) {
            CHECK((uintptr_t)objects[j] % 16 == 0);
            mark(objects[j], size < 8192 ? size : 8192, (unsigned)j);
        }
        for (size_t j = 0; j < count; j++)
            CHECK(is_marked(objects[j], size < 8192 ? size : 8192, (unsigned)j, size < 8192 ? size : 8192));
        free(objects[0]);
        objects[0] = NULL;
        craton_free_batch(objects, count);
    }
    CHECK(craton_alloc_batch(100, 0, objects) == 0);
    craton_free_batch(NULL, 0);
    errno = 0;
    objects[1] = NULL;
    CHECK(craton_alloc_batch(SIZE_MAX, 2, objects) == 0 && errno == ENOMEM);
    /* In any order, of many classes. */
    for (int i = 0; i < MOST; i++)
        objects[i] = malloc((size_t)(i * 7919 % 700));
    craton_free_batch(objects, MOST);
}

/* The word behind `key` in /proc/self/smaps for an address, such as the flags of its mapping. */
static void smaps(const void *address, const char *key, char *into, size_t size) {
    FILE *file = fopen("/proc/self/smaps", "r");
    CHECK(file);
    char line[1024];
    int here = 0;
    into[0] = 0;
    while (fgets(line, sizeof line, file)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = (uintptr_t)address >= from && (uintptr_t)address < to;
        else if (here && strncmp(line, key, strlen(key)) == 0)
            snprintf(into, size, "%s", line);
    }
    fclose(file);
}

static void hints(void) {
    static const unsigned HINTS[] = {0, CRATON_COLD, CRATON_HOT, CRATON_DENSE, CRATON_SHORT_LIVED};
    enum { KINDS = 5, EACH = 2000 };
    static char *objects[KINDS][EACH];
    for (int i = 0; i < EACH; i++)
        for (int k = 0; k < KINDS; k++) {
            size_t size = (size_t)(i % 50 == 0 ? 300000 : 16 + i), align = (size_t)1 << i % 7;
            CHECK((objects[k][i] = craton_alloc_hinted(size, align, HINTS[k])));
            CHECK((uintptr_t)objects[k][i] % align == 0 && malloc_usable_size(objects[k][i]) >= size);
            objects[k][i][size - 1] = 1;
        }
    /* No hugepage has objects of two kinds. */
    for (int k = 1; k < KINDS; k++)
        for (int other = 0; other < KINDS; other++)
            for (int i = 0; i < EACH && other != k; i += 7)
                for (int j = 0; j < EACH; j += 3)
                    CHECK((uintptr_t)objects[k][i] / (2 * MIB) != (uintptr_t)objects[other][j] / (2 * MIB));
    char flags[1024];
    smaps(objects[1][1], "VmFlags:", flags, sizeof flags);
    CHECK(strstr(flags, " nh"));
    smaps(objects[2][1], "VmFlags:", flags, sizeof flags);
    CHECK(strstr(flags, " hg"));
    for (int k = 0; k < KINDS; k++)
        for (int i = 0; i < EACH; i++) {
            if (i % 3 == 0)
                CHECK((objects[k][i] = realloc(objects[k][i], 5000)));
            free(objects[k][i]);
        }
    errno = 0;
    CHECK(!craton_alloc_hinted(10, 1, CRATON_COLD | CRATON_HOT) && errno == EINVAL);
    errno = 0;
    CHECK(!craton_alloc_hinted(10, 1, 64) && errno == EINVAL);
    errno = 0;
    CHECK(!craton_alloc_hinted(10, 3, 0) && errno == EINVAL);
    errno = 0;
    CHECK(!craton_alloc_hinted(SIZE_MAX, 1, CRATON_COLD) && errno == ENOMEM);
}

static struct craton_heap_stats counts(craton_heap *heap) {
    struct craton_heap_stats s;
    CHECK(craton_heap_stats(heap, &s, sizeof s) == 0 && s.version == 1);
    return s;
}

static craton_heap *named(const char *name, size_t limit, unsigned flags) {
    struct craton_heap_options options = {sizeof options, name, limit, flags};
    return craton_heap_create(&options);
}

static void heaps(void) {
    craton_heap *heap = named("heaps of own.c", 0, 0), *other = craton_heap_create(NULL);
    CHECK(heap && other && heap != other);
    enum { MOST = 3000 };
    static void *objects[MOST];
    for (int i = 0; i < MOST; i++) {
        size_t size = (size_t)(i % 100 == 0 ? 400000 : i);
        objects[i] = i % 3 ? craton_heap_alloc(heap, size) : craton_heap_calloc(heap, 1, size);
        CHECK(objects[i] && (i % 3 || is_zero(objects[i], size)));
        CHECK(craton_heap_usable_size(heap, objects[i]) >= size && malloc_usable_size(objects[i]) >= size);
        mark(objects[i], size, (unsigned)i);
    }
    CHECK(counts(heap).objects == MOST && counts(other).objects == 0);
    CHECK(strcmp(counts(heap).name, "heaps of own.c") == 0);
    for (int i = 0; i < MOST; i += 2) {
        size_t size = (size_t)(i % 100 == 0 ? 400000 : i), half = size / 2;
        void *(*const resize)(void *, size_t) = realloc;
        void *grown = i % 4 ? resize(objects[i], 2 * size + 1) : craton_heap_realloc(heap, objects[i], 2 * size + 1);
        CHECK(grown && is_marked(grown, size, (unsigned)i, half));
        CHECK(craton_heap_usable_size(heap, grown) > 2 * size);
        objects[i] = grown;
    }
    CHECK(counts(heap).objects == MOST);
    for (int i = 0; i < MOST; i += 3) {
        if (i % 2) free(objects[i]);
        else craton_heap_free(heap, objects[i]);
    }
    CHECK(counts(heap).objects == MOST - MOST / 3);
    for (size_t align = 1; align <= 2 * MIB; align *= 2) {
        void *p = craton_heap_aligned_alloc(heap, align, 100);
        CHECK(p && (uintptr_t)p % align == 0);
    }
    errno = 0;
    CHECK(!craton_heap_aligned_alloc(heap, 3, 100) && errno == EINVAL);
    errno = 0;
    CHECK(!craton_heap_aligned_alloc(heap, 4 * MIB, 100) && errno == ENOMEM);
    errno = 0;
    CHECK(!craton_heap_calloc(heap, SIZE_MAX, 2) && errno == ENOMEM);
    errno = 0;
    CHECK(!craton_heap_alloc(heap, SIZE_MAX) && errno == ENOMEM);
    craton_heap_free(heap, NULL);
    craton_heap_destroy(heap);
    craton_heap_destroy(other);
    craton_heap_destroy(NULL);
}

static void heap_options(void) {
    errno = 0;
    CHECK(!named("32 bytes are one more than a name", 0, 0) && errno == EINVAL);
    errno = 0;
    CHECK(!named("no \"quotes\"", 0, 0) && errno == EINVAL);
    errno = 0;
    CHECK(!named("flags", 0, 77) && errno == EINVAL);
    struct craton_heap_options small = {4, "size", 0, 0};
    errno = 0;
    CHECK(!craton_heap_create(&small) && errno == EINVAL);
    craton_heap *heap = named("limit", 10 * MIB, CRATON_HEAP_APART);
    struct craton_heap_stats s;
    errno = 0;
    CHECK(craton_heap_stats(heap, &s, 8) == -1 && errno == EINVAL);
    size_t got = 0;
    errno = 0;
    while (craton_heap_alloc(heap, 1000))
        got++;
    CHECK(errno == ENOMEM && got >= 9000 && got <= 10 * MIB / 1000);
    s = counts(heap);
    CHECK(s.objects == got && s.used_bytes <= s.limit_bytes && s.limit_bytes == 10 * MIB && s.refused == 1);
    craton_heap_destroy(heap);
}

/* A heap leaves nothing behind, however much it had. */
static void heaps_come_and_go(void) {
    size_t before = 0;
    for (int round = 0; round < 200; round++) {
        craton_heap *heap = named("rounds", 0, (unsigned)round % 4);
        CHECK(heap);
        for (int i = 0; i < 3000; i++) {
            char *p = craton_heap_alloc(heap, (size_t)(i % 500 == 0 ? 300000 : i));
            CHECK(p);
            *p = 1;
        }
        craton_heap_destroy(heap);
        craton_release();
        if (round == 20)
            before = rss_kib();
    }
    CHECK(rss_kib() < before + 4096);
}

static craton_heap *shared;

static void *worker(void *seed) {
    unsigned state = (unsigned)(uintptr_t)seed;
    void *mine[64] = {0};
    for (int i = 0; i < 30000; i++) {
        state = state * 1664525u + 1013904223u;
        int at = state >> 26;
        size_t size = (state >> 10) % 2000;
        if (mine[at] && state & 512) {
            free(mine[at]);
            mine[at] = NULL;
        } else if (!mine[at]) {
            CHECK((mine[at] = craton_heap_alloc(shared, size)));
            memset(mine[at], at, size);
        } else {
            CHECK((mine[at] = craton_heap_realloc(shared, mine[at], size)));
        }
    }
    for (int i = 0; i < 64; i++)
        free(mine[i]);
    return NULL;
}

static void heap_in_threads(void) {
    pthread_t threads[8];
    CHECK((shared = named("threads", 0, 0)));
    for (uintptr_t i = 0; i < 8; i++)
        CHECK(pthread_create(&threads[i], NULL, worker, (void *)(i + 1)) == 0);
    for (int i = 0; i < 8; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(counts(shared).objects == 0);
    craton_heap_destroy(shared);
}

static volatile int stop;

static void *churner(void *seed) {
    while (!stop)
        worker(seed);
    return NULL;
}

/* Children can use every heap of their parent, whatever its threads were doing. */
static void heap_in_forks(void) {
    pthread_t threads[3];
    CHECK((shared = named("forks", 0, 0)));
    char *kept = craton_heap_alloc(shared, 1000);
    strcpy(kept, "kept");
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, churner, (void *)(i + 1)) == 0);
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK(strcmp(kept, "kept") == 0);
            for (int j = 0; j < 200; j++)
                CHECK(craton_heap_alloc(shared, (size_t)j * 20));
            craton_heap *own = craton_heap_create(NULL);
            CHECK(own && craton_heap_alloc(own, 100));
            CHECK(craton_alloc_hinted(100, 1, CRATON_COLD));
            free(kept);
            craton_heap_destroy(shared);
            craton_heap_destroy(own);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(strcmp(kept, "kept") == 0);
    craton_heap_destroy(shared);
}

/* Without memory every call fails, and nothing has changed. */
static void no_memory(void) {
    void *objects[4];
    craton_heap *heap = named("no memory", 0, 0);
    char *small = craton_heap_alloc(heap, 100), *cold = craton_alloc_hinted(100, 1, CRATON_COLD);
    CHECK(small && cold);
    struct rlimit now = {(size_t)statm_kib(0) * 1024, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &now) == 0);
    /* The heap's region is reserved address space: use it up first. */
    size_t got = 0;
    for (size_t size = GIB; size >= 16; size /= 2)
        while (craton_heap_alloc(heap, size))
            got += size;
    CHECK(got > 0);
    struct craton_heap_stats before = counts(heap);
    CHECK(before.refused > 0);
    for (size_t size = 1; size < MIB; size *= 3) {
        errno = 0;
        CHECK(!craton_heap_alloc(heap, size) && errno == ENOMEM);
        errno = 0;
        CHECK(!craton_heap_calloc(heap, 1, size) && errno == ENOMEM);
        errno = 0;
        CHECK(!craton_heap_realloc(heap, small, 200 + size * 100) && errno == ENOMEM);
    }
    struct craton_heap_stats after = counts(heap);
    CHECK(after.objects == before.objects && after.used_bytes == before.used_bytes && after.held_bytes == before.held_bytes);
    errno = 0;
    CHECK(!craton_alloc_hinted(3 * MIB, 1, CRATON_COLD) && errno == ENOMEM);
    errno = 0;
    CHECK(craton_alloc_batch(64 * MIB, 2, objects) == 0 && errno == ENOMEM);
    errno = 0;
    CHECK(!craton_alloc_at_least(3 * GIB).ptr && errno == ENOMEM);
    craton_heap_destroy(heap);
    CHECK((heap = craton_heap_create(NULL)) && craton_heap_alloc(heap, MIB));
}

/* Without address space for the table of heaps, there is no heap. */
static void no_room_for_heaps(void) {
    struct rlimit now = {(size_t)statm_kib(0) * 1024, RLIM_INFINITY};
    CHECK(setrlimit(RLIMIT_AS, &now) == 0);
    errno = 0;
    CHECK(!craton_heap_create(NULL) && errno == ENOMEM);
    errno = 0;
    CHECK(!craton_alloc_hinted(100, 1, CRATON_HOT) && errno == ENOMEM);
    free(malloc(1000));
    now.rlim_cur = RLIM_INFINITY;
    CHECK(setrlimit(RLIMIT_AS, &now) == 0);
    craton_heap *heap = craton_heap_create(NULL);
    CHECK(heap && craton_heap_alloc(heap, 1000) && craton_alloc_hinted(100, 1, CRATON_HOT));
}

static void options(void) {
    char text[600];
    size_t n = 0;
    for (const char *key; (key = craton_option_name(n)); n++) {
        ptrdiff_t len = craton_option_get(key, text, sizeof text);
        CHECK(len >= 0 && (size_t)len == strlen(text) && craton_option_get(key, NULL, 0) == len);
        CHECK(craton_option_set(key, text) == 0);
    }
    CHECK(n >= 8);
    CHECK(craton_option_set("thread_cache", "12345") == 0);
    CHECK(craton_option_get("thread_cache", text, 3) == 5 && strcmp(text, "12") == 0);
    errno = 0;
    CHECK(craton_option_get("no_such_key", text, sizeof text) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(craton_option_set("thread_cache", "much") == -1 && errno == EINVAL);
    errno = 0;
    CHECK(craton_option_set(NULL, "1") == -1 && errno == EINVAL);
    errno = 0;
    CHECK(craton_option_set("thread_cache", NULL) == -1 && errno == EINVAL);
    errno = 0;
    CHECK(craton_option_get(NULL, NULL, 0) == -1 && errno == EINVAL);
    CHECK(strchr(craton_version(), '.'));
}

/* Prints the document, for the test to read. */
static void statistics(void) {
    craton_heap *heap = named("statistics", 8 * MIB, 0);
    CHECK(craton_heap_alloc(heap, 1000) && craton_heap_alloc(heap, MIB));
    CHECK(craton_alloc_hinted(100, 1, CRATON_COLD));
    char cut[100];
    size_t size = craton_stats_json(NULL, 0) + 1000;
    CHECK(craton_stats_json(cut, sizeof cut) > sizeof cut && strlen(cut) == sizeof cut - 1);
    char *text = malloc(size);
    CHECK(craton_stats_json(text, size) < size);
    puts(text);
    struct craton_segment segment;
    craton_stats(&segment);
    CHECK(segment.version >= 1 && segment.refills > 0);
}

/* Heaps leave their pages to plain objects of every class, which keep their contents. */
static void after_heaps(void) {
    enum { OBJECTS = 64 };
    char *objects[OBJECTS];
    for (size_t small = 16; small <= 4000; small += 332) {
        for (size_t size = 1000; size <= 40000; size += size < 30000 ? 3137 : 512) {
            craton_heap *heap = named("short", 0, 0);
            for (int i = 0; i < 300; i++)
                CHECK(craton_heap_alloc(heap, small));
            craton_heap_destroy(heap);
            for (int i = 0; i < OBJECTS; i++) {
                CHECK((objects[i] = malloc(size)));
                memset(objects[i], i, size);
            }
            for (int i = 0; i < OBJECTS; i++) {
                CHECK(objects[i][0] == i && objects[i][size - 1] == i);
                free(objects[i]);
            }
        }
    }
}

static const struct part PARTS[] = {
    {"after_heaps", after_heaps},
    {"good_sizes", good_sizes},
    {"right_sizes", right_sizes},
    {"batches", batches},
    {"hints", hints},
    {"heaps", heaps},
    {"heap_options", heap_options},
    {"heaps_come_and_go", heaps_come_and_go},
    {"heap_in_threads", heap_in_threads},
    {"heap_in_forks", heap_in_forks},
    {"no_memory", no_memory},
    {"no_room_for_heaps", no_room_for_heaps},
    {"options", options},
    {"statistics", statistics},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

/* Large and huge objects: contents through every resize, alignments, refusals, forks, threads, and
 * memory use. */
#define _GNU_SOURCE
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* The program's system calls precede the C library's: refuses the n-th, counted from 1, or all from
 * it on; 0 refuses none. */
static __thread volatile long refuse_at, calls; /* a compiler thinks that it knows what realloc looks at */
static __thread volatile int refuse_on;

static int refused(void) {
    calls = calls + 1;
    if (refuse_at == 0 || calls < refuse_at || (calls > refuse_at && !refuse_on))
        return 0;
    errno = ENOMEM;
    return 1;
}

void *mmap(void *at, size_t length, int protection, int flags, int fd, off_t offset) {
    return refused() ? MAP_FAILED : (void *)syscall(SYS_mmap, at, length, protection, flags, fd, offset);
}
void *mmap64(void *at, size_t length, int protection, int flags, int fd, off_t offset) __attribute__((alias("mmap")));

void *mremap(void *at, size_t old, size_t new, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(rest, void *) : NULL;
    va_end(rest);
    return refused() ? MAP_FAILED : (void *)syscall(SYS_mremap, at, old, new, flags, to);
}

int madvise(void *at, size_t length, int advice) { return refused() ? -1 : (int)syscall(SYS_madvise, at, length, advice); }

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* All orders of magnitude up to `most` alike. */
static size_t some_size(uint64_t *state, size_t most) {
    size_t bits = 63 - (size_t)__builtin_clzll(most);
    size_t size = (size_t)1 << (4 + next(state) % (bits - 3));
    size += next(state) % size;
    return size > most ? most : size;
}

static long mappings(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps);
    long lines = 0;
    for (int c; (c = getc(maps)) != EOF;)
        lines += c == '\n';
    fclose(maps);
    return lines;
}

static long faults(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

enum { SLOTS = 12 };
struct slot {
    void *object;
    size_t size;
    unsigned seed;
};

static void verify(const struct slot *slot) {
    if (slot->object)
        CHECK(is_marked(slot->object, slot->size, slot->seed, slot->size));
}

/* One change of one slot. */
static void change(struct slot *slot, uint64_t *state, size_t most) {
    verify(slot);
    unsigned seed = (unsigned)next(state);
    size_t size = some_size(state, most);
    if (!slot->object) {
        size_t align = (size_t)1 << (4 + next(state) % 20);
        switch (next(state) % 3) {
        case 0: slot->object = malloc(size); break;
        case 1:
            slot->object = calloc(1, size);
            CHECK(is_zero(slot->object, size));
            break;
        default:
            slot->object = memalign(align, size);
            CHECK((uintptr_t)slot->object % align == 0);
        }
    } else if (next(state) % 5 == 0) {
        free(slot->object);
        slot->object = NULL;
        return;
    } else {
        /* Small steps as well as any other size. */
        if (next(state) % 2)
            size = slot->size + slot->size / (1 + next(state) % 16);
        if (size > most)
            size = slot->size / 2 + 1;
        size_t kept = size < slot->size ? size : slot->size;
        slot->object = realloc(slot->object, size);
        CHECK(slot->object && is_marked(slot->object, slot->size, slot->seed, kept));
    }
    CHECK(slot->object && malloc_usable_size(slot->object) >= size);
    slot->size = size;
    slot->seed = seed;
    mark(slot->object, size, seed);
}

static void empty(struct slot *slots) {
    for (int i = 0; i < SLOTS; i++) {
        verify(&slots[i]);
        free(slots[i].object);
        slots[i].object = NULL;
    }
}

static void any_size(void) {
    static struct slot slots[SLOTS];
    uint64_t state = 88172645463325252u;
    long before = mappings();
    int changes = rounds(1500, 4000);
    for (int i = 0; i < changes; i++)
        change(&slots[next(&state) % SLOTS], &state, 80 * MIB);
    empty(slots);
    fprintf(stderr, "%ld mappings before, %ld after\n", before, mappings());
    CHECK(mappings() < before + 100);
    malloc_trim(0);
    fprintf(stderr, "%zu KiB stay\n", rss_kib());
    CHECK(rss_kib() < 24 * 1024);
}

static void *worker(void *seed) {
    struct slot slots[SLOTS] = {{0}};
    uint64_t state = (uintptr_t)seed * 0x9e3779b97f4a7c15u;
    int changes = rounds(100, 400);
    for (int i = 0; i < changes; i++)
        change(&slots[next(&state) % SLOTS], &state, 40 * MIB);
    empty(slots);
    return NULL;
}

/* Threads resize objects, while the process with huge objects forks repeatedly. */
static void forked(void) {
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, worker, (void *)(i + 1)) == 0);
    static struct slot slots[SLOTS];
    uint64_t state = 4711;
    int forks = rounds(15, 60);
    for (int i = 0; i < forks; i++) {
        for (int j = 0; j < 10; j++)
            change(&slots[next(&state) % SLOTS], &state, 40 * MIB);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            for (int j = 0; j < 40; j++)
                change(&slots[next(&state) % SLOTS], &state, 40 * MIB);
            empty(slots);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    empty(slots);
}

/* Every power of two up to 1 GiB, with every kind of size. */
static void alignments(void) {
    static const size_t sizes[] = {0, 1, 100, 4096, 5000, 100 * KIB, 300 * KIB, 3 * MIB, 33 * MIB};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    long maps = mappings();
    size_t before = rss_kib();
    for (size_t align = 16; align <= GIB; align *= 2) {
        void *held[SIZES];
        for (size_t i = 0; i < SIZES; i++) {
            void *p = NULL;
            CHECK(posix_memalign(&p, align, sizes[i]) == 0 && p && (uintptr_t)p % align == 0);
            mark(p, sizes[i] < 64 ? sizes[i] : 64, (unsigned)i);
            held[i] = p;
            void *q = memalign(align, sizes[i]);
            CHECK(q && (uintptr_t)q % align == 0 && q != p);
            free(q);
            q = aligned_alloc(align, sizes[i]);
            CHECK(q && (uintptr_t)q % align == 0 && q != p);
            /* Contents survive where the alignment need not. */
            mark(q, sizes[i] < 5000 ? sizes[i] : 5000, 9);
            q = realloc(q, 2 * sizes[i] + 10);
            CHECK(q && is_marked(q, sizes[i] < 5000 ? sizes[i] : 5000, 9, sizes[i]));
            free(q);
        }
        for (size_t i = 0; i < SIZES; i++) {
            CHECK(is_marked(held[i], sizes[i] < 64 ? sizes[i] : 64, (unsigned)i, sizes[i]));
            free(held[i]);
        }
    }
    void *many[200];
    for (int i = 0; i < 200; i++) {
        size_t align = i % 2 ? MIB : 64 * MIB;
        CHECK((many[i] = memalign(align, 64 * KIB)) && (uintptr_t)many[i] % align == 0);
        memset(many[i], 1, 64 * KIB);
    }
    fprintf(stderr, "200 aligned objects: %zu KiB, %ld mappings more\n", rss_kib() - before, mappings() - maps);
    CHECK(mappings() < maps + 320);
    for (int i = 0; i < 200; i++)
        free(many[i]);
    malloc_trim(0);
    fprintf(stderr, "none of them: %zu KiB, %ld mappings more\n", rss_kib() - before, mappings() - maps);
    CHECK(rss_kib() < before + 8 * 1024 && mappings() < maps + 40);
    CHECK(valloc(1) && (uintptr_t)pvalloc(1) % 4096 == 0);
}

static long refuse_each(int on) {
    static const size_t from[] = {300 * KIB, 5 * MIB, 9 * MIB + 5000, 31 * MIB, 40 * MIB, 40 * MIB};
    static const size_t to[] = {6 * MIB, 20 * MIB, 30 * MIB, 70 * MIB, 90 * MIB, 5 * MIB};
    long tried = 0;
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        for (long n = 1;; n++) {
            void *p = malloc(from[i]);
            void *behind = malloc(from[i]); /* so that it cannot grow where it stands */
            CHECK(p && behind);
            mark(p, from[i], (unsigned)n);
            mark(behind, from[i], 77);
            calls = 0;
            refuse_on = on;
            refuse_at = n;
            void *q = realloc(p, to[i]);
            refuse_at = 0;
            tried++;
            size_t kept = to[i] < from[i] ? to[i] : from[i];
            if (q) {
                CHECK(is_marked(q, from[i], (unsigned)n, kept));
                mark(q, to[i], 5);
                CHECK(is_marked(q, to[i], 5, to[i]));
            } else {
                CHECK(errno == ENOMEM && is_marked(p, from[i], (unsigned)n, from[i]));
                q = p;
            }
            CHECK(is_marked(behind, from[i], 77, from[i]));
            free(q);
            free(behind);
            if (calls < n)
                break;
        }
    }
    return tried;
}

/* Each system call of a large realloc is refused in turn, then all from each on: the object is
 * unchanged, or has its new size. */
static void refusals(void) {
    long one = refuse_each(0), all = refuse_each(1);
    fprintf(stderr, "%ld and %ld refusals\n", one, all);
    CHECK(one > 12 && all > 12);
}

/* An object that grows behind another one is moved, not copied, and frees its tail when it shrinks.
 */
/* More huge objects than a process may have mappings. */
static void many(void) {
    enum { MANY = 70000 };
    static char *objects[MANY];
    const size_t size = 40000000;
    for (int i = 0; i < MANY; i++) {
        CHECK((objects[i] = malloc(size)));
        if (i % 1000 == 0)
            objects[i][0] = objects[i][size - 1] = 1;
    }
    CHECK(mappings() < 2000);
    for (int i = 0; i < MANY; i++) {
        CHECK(i % 1000 || (objects[i][0] == 1 && objects[i][size - 1] == 1));
        free(objects[i]);
    }
    CHECK(mappings() < 200);
    /* More than the machine can ever hold, unless the system promises everything. */
    char mode[16];
    read_proc("/proc/sys/vm/overcommit_memory", mode, sizeof mode);
    CHECK(mode[0] == '1' || malloc((size_t)1 << 46) == NULL);
}

static void moves(void) {
    size_t before = rss_kib();
    size_t size = 5 * MIB;
    unsigned char *p = malloc(size), *behind = malloc(5 * MIB);
    CHECK(p && behind);
    memset(behind, 1, 5 * MIB);
    mark(p, size, 3);
    while (size < 200 * MIB) {
        size_t larger = size + size / 8;
        p = realloc(p, larger);
        CHECK(p && is_marked(p, size, 3, size));
        memset(p, 2, larger);
        mark(p, larger, 3);
        size = larger;
    }
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    size_t peak = (size_t)usage.ru_maxrss - before;
    fprintf(stderr, "%zu KiB at most for %zu KiB\n", peak, size / KIB);
    CHECK(peak < size / KIB + 24 * 1024); /* A copy would have had both at a time. */
    p = realloc(p, 33 * MIB);
    CHECK(p && is_marked(p, size, 3, 33 * MIB));
    fprintf(stderr, "%zu KiB after it shrank\n", rss_kib() - before);
    CHECK(rss_kib() - before < 60 * 1024);
    free(p);
    free(behind);
}

/* The memory of freed huge objects is kept for others, but only for a while. */
static void churn(void) {
    size_t before = rss_kib();
    uint64_t state = 99;
    for (int i = 0; i < 100; i++) {
        size_t size = 40 * MIB + next(&state) % (8 * MIB);
        char *p = malloc(size);
        CHECK(p);
        for (size_t at = 0; at < size; at += 4096)
            p[at] = (char)i;
        free(p);
        if (i == 9)
            calls = faults();
    }
    long later = faults() - calls;
    fprintf(stderr, "%ld faults in 90 rounds\n", later);
    CHECK(later < 90 * 20 / 2); /* There are at least 20 hugepages in each. */
    char *zero = calloc(1, 44 * MIB);
    CHECK(zero && is_zero(zero, 44 * MIB));
    free(zero);
    usleep(3500000);
    fprintf(stderr, "%zu KiB later\n", rss_kib() - before);
    CHECK(rss_kib() < before + 24 * 1024);
}

int main(int argc, char **argv) {
    static const struct part parts[] = {{"any_size", any_size}, {"forked", forked},     {"many", many}, {"alignments", alignments},
                                        {"refusals", refusals}, {"moves", moves},       {"churn", churn},
                                        {NULL, NULL}};
    return run_part(argc, argv, parts);
}

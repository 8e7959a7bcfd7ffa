/* What C, POSIX and glibc promise of each function that allocates. */
#define _GNU_SOURCE
#include "check.h"
#include <malloc.h>

/* Missing in some C libraries: the allocator under test has them. */
extern void cfree(void *) __attribute__((weak));
extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

/* More than any object may have. Volatile: the compiler would warn of each call. */
static volatile size_t too_large = (size_t)PTRDIFF_MAX + 1;
static volatile size_t all_ones = SIZE_MAX;

static const size_t SIZES[] = {
    1, 7, 8, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128, 129, 255, 256, 257, 500, 1000, 1024, 1025, 2000,
    4095, 4096, 4097, 8192, 10000, 16384, 20000, 32768, 50000, 65536, 100000, 131072, 200000, 262143, 262144, 262145,
    300000, 524288, 1000000, 1048576, 2097151, 2097152, 2097153, 4194305, 10000000, 16777216, 33554431, 33554432,
    33554433, 50000000, 67108864, 104857600,
};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static int aligned_to(const void *p, size_t align) { return ((uintptr_t)p & (align - 1)) == 0; }

static void alignment(void) {
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        size_t n = SIZES[i];
        void *p[8] = {malloc(n), calloc(1, n), realloc(NULL, n), reallocarray(NULL, 1, n),
                      aligned_alloc(16, n), memalign(16, n), valloc(n), pvalloc(n)};
        for (size_t j = 0; j < COUNT(p); j++) {
            CHECK(p[j] && aligned_to(p[j], 16));
            CHECK(j < 6 || aligned_to(p[j], 4096));
        }
        CHECK(malloc_usable_size(p[7]) >= (n + 4095) / 4096 * 4096);
        for (size_t j = 0; j < COUNT(p); j++)
            free(p[j]);
    }
}

static void zero_sizes(void) {
    void *p[9] = {malloc(0), malloc(0), calloc(0, 8), calloc(8, 0), realloc(NULL, 0), reallocarray(NULL, 0, 8),
                  aligned_alloc(64, 0), memalign(64, 0), valloc(0)};
    for (size_t i = 0; i < COUNT(p); i++) {
        CHECK(p[i]);
        for (size_t j = 0; j < i; j++)
            CHECK(p[i] != p[j]);
    }
    void *q = NULL;
    CHECK(posix_memalign(&q, 64, 0) == 0 && q);
    void *r = pvalloc(0);
    CHECK(r && aligned_to(r, 4096));
    for (size_t i = 0; i < COUNT(p); i++)
        free(p[i]);
    free(q);
    free(r);
    free(NULL);
    CHECK(malloc_usable_size(NULL) == 0);
}

static void errno_kept(void) {
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        errno = 77;
        void *p = malloc(SIZES[i]);
        void *q = calloc(1, SIZES[i]);
        void *r = memalign(64, SIZES[i]);
        CHECK(p && q && r && errno == 77);
        p = realloc(p, SIZES[i] * 2);
        CHECK(p && errno == 77);
        free(p);
        free(q);
        free(r);
        CHECK(errno == 77);
    }
}

static void fails(void *p) {
    CHECK(p == NULL);
    CHECK(errno == ENOMEM);
    errno = 0;
}

static void too_much(void) {
    const size_t sizes[] = {too_large, too_large + 1, all_ones, all_ones - 15, all_ones - 4096, all_ones / 2 + 4096};
    void *old = malloc(100);
    mark(old, 100, 5);
    errno = 0;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        size_t n = sizes[i];
        fails(malloc(n));
        fails(calloc(1, n));
        fails(calloc(n, 1));
        fails(realloc(NULL, n));
        fails(realloc(old, n));
        fails(reallocarray(old, n, 1));
        fails(aligned_alloc(64, n));
        fails(memalign(4096, n));
        fails(memalign(GIB, n));
        fails(valloc(n));
        fails(pvalloc(n));
        void *place = &place;
        CHECK(posix_memalign(&place, 64, n) == ENOMEM && place == &place && errno == ENOMEM);
    }
    /* The largest valid size finds no room in any address space of today. */
    fails(malloc(too_large - 1));
    fails(malloc(too_large - 4096));
    CHECK(is_marked(old, 100, 5, 100));
    free(old);
}

static void overflow(void) {
    volatile size_t half = (size_t)1 << 32;
    void *old = malloc(100);
    mark(old, 100, 6);
    errno = 0;
    fails(calloc(half, half));
    fails(calloc(all_ones, 2));
    fails(calloc(2, all_ones));
    fails(calloc(half + 1, half));
    fails(calloc(all_ones, all_ones));
    fails(reallocarray(old, half, half));
    fails(reallocarray(old, all_ones, 2));
    fails(reallocarray(old, 3, all_ones / 2));
    fails(reallocarray(NULL, half + 1, half));
    CHECK(is_marked(old, 100, 6, 100));
    old = reallocarray(old, 10, 50);
    CHECK(old && malloc_usable_size(old) >= 500 && is_marked(old, 100, 6, 100));
    free(old);
}

static void realloc_ends(void) {
    void *p = realloc(NULL, 100);
    CHECK(p && malloc_usable_size(p) >= 100);
    CHECK(realloc(p, 0) == NULL); /* frees, as in glibc */
    p = malloc(10 * MIB);
    CHECK(realloc(p, 0) == NULL);
    p = malloc(64 * MIB);
    CHECK(realloc(p, 0) == NULL);
    p = malloc(64);
    CHECK(reallocarray(p, 0, 5) == NULL);
    /* The freed object is used again, so it was freed. */
    size_t before = rss_kib();
    for (int i = 0; i < 2000; i++) {
        p = malloc(MIB);
        mark(p, MIB, 1);
        CHECK(realloc(p, 0) == NULL);
    }
    CHECK(rss_kib() < before + 64 * 1024);
}

/* Each size to each other one: what both have in common stays. */
static void realloc_jumps(void) {
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        for (size_t j = 0; j < COUNT(SIZES); j++) {
            size_t from = SIZES[i], to = SIZES[j];
            unsigned char *p = malloc(from);
            CHECK(p);
            mark(p, from, (unsigned)(i + j));
            p = realloc(p, to);
            CHECK(p && aligned_to(p, 16));
            CHECK(is_marked(p, from, (unsigned)(i + j), to));
            CHECK(malloc_usable_size(p) >= to);
            p[to - 1] = 1;
            free(p);
        }
    }
}

/* Up and down again by one object, with small steps. */
static void realloc_steps(void) {
    size_t size = 1;
    unsigned char *p = malloc(1);
    p[0] = mark_at(0, 9);
    for (int i = 0; i < 3000; i++) {
        size_t next = i % 5 == 4 ? size - size / 4 : size + size / 8 + 3;
        p = realloc(p, next);
        CHECK(p && is_marked(p, size, 9, next));
        mark(p, next, 9);
        size = next < 8 * MIB ? next : 1;
    }
    free(p);
}

static void posix_memalign_errors(void) {
    const size_t bad[] = {0, 1, 2, 4, 3, 7, 9, 12, 24, 48, 100, 4095, 4097, all_ones, too_large + 8};
    errno = 55;
    for (size_t i = 0; i < COUNT(bad); i++) {
        void *place = &place;
        CHECK(posix_memalign(&place, bad[i], 100) == EINVAL);
        CHECK(place == &place && errno == 55);
    }
    void *place = NULL;
    CHECK(posix_memalign(&place, sizeof(void *), 100) == 0 && place && errno == 55);
    free(place);
}

static void aligned_alloc_errors(void) {
    const size_t bad[] = {0, 3, 24, 100, 4097, all_ones};
    for (size_t i = 0; i < COUNT(bad); i++) {
        errno = 0;
        CHECK(aligned_alloc(bad[i], 240) == NULL && errno == EINVAL);
    }
    /* memalign rounds its alignment up, as glibc's does, or refuses one too large for that. */
    void *p = memalign(24, 240);
    CHECK(p && aligned_to(p, 32));
    free(p);
    errno = 0;
    CHECK(memalign(too_large + 1, 240) == NULL && errno == EINVAL);
}

static void alignments(void) {
    const size_t sizes[] = {1, 24, 100, 1000, 5000, 70000, 300000, 3000000, 40000000};
    for (size_t align = 1; align <= GIB; align *= 2) {
        void *kept[COUNT(sizes)][3];
        for (size_t i = 0; i < COUNT(sizes); i++) {
            size_t n = sizes[i];
            void **p = kept[i];
            p[0] = aligned_alloc(align, n);
            p[1] = memalign(align, n);
            CHECK(posix_memalign(&p[2], align < 8 ? 8 : align, n) == 0);
            for (int j = 0; j < 3; j++) {
                CHECK(p[j] && aligned_to(p[j], align) && malloc_usable_size(p[j]) >= n);
                mark(p[j], n, (unsigned)(i + j));
            }
        }
        for (size_t i = 0; i < COUNT(sizes); i++) {
            for (int j = 0; j < 3; j++)
                CHECK(is_marked(kept[i][j], sizes[i], (unsigned)(i + j), sizes[i]));
            void *moved = realloc(kept[i][0], sizes[i] + 5000);
            CHECK(moved && is_marked(moved, sizes[i], (unsigned)i, sizes[i]));
            free(moved);
            free(kept[i][1]);
            free(kept[i][2]);
        }
    }
    /* An alignment without an end. */
    errno = 0;
    CHECK(memalign(too_large, 1) == NULL && errno == ENOMEM);
}

static void calloc_zeroes(void) {
    for (size_t i = 0; i < COUNT(SIZES); i++) {
        size_t n = SIZES[i];
        size_t many = n < 100000 ? 100 : n < 4 * MIB ? 8 : 2;
        void *p[100];
        for (int round = 0; round < 3; round++) {
            for (size_t j = 0; j < many; j++) {
                p[j] = j % 2 ? calloc(1, n) : calloc(n, 1);
                CHECK(p[j] && is_zero(p[j], n));
                memset(p[j], 0xff, malloc_usable_size(p[j]));
            }
            for (size_t j = 0; j < many; j++)
                free(p[j]);
            void *dirty = malloc(n);
            memset(dirty, 0xee, n);
            free(dirty);
        }
    }
}

static void usable(void) {
    enum { MANY = 4000 };
    static unsigned char *p[MANY];
    static size_t size[MANY];
    for (int i = 0; i < MANY; i++) {
        size_t n = i < 2000 ? (size_t)i : (size_t)i * (size_t)i % 600011;
        p[i] = malloc(n);
        size[i] = malloc_usable_size(p[i]);
        CHECK(p[i] && size[i] >= n);
        mark(p[i], size[i], (unsigned)i);
    }
    for (int i = 0; i < MANY; i++) {
        CHECK(is_marked(p[i], size[i], (unsigned)i, size[i]));
        CHECK(malloc_usable_size(p[i]) == size[i]);
        free(p[i]);
    }
}

static void other_frees(void) {
    CHECK(cfree && free_sized && free_aligned_sized);
    cfree(NULL);
    free_sized(NULL, 0);
    free_aligned_sized(NULL, 64, 0);
    free_aligned_sized(NULL, 0, 0);
    free_aligned_sized(NULL, 3, 100);
    size_t before = rss_kib();
    for (int round = 0; round < 200; round++) {
        for (size_t i = 0; i < COUNT(SIZES) && SIZES[i] < 4 * MIB; i++) {
            size_t n = SIZES[i];
            void *p = malloc(n), *q = calloc(1, n), *r = aligned_alloc(64, n);
            memset(p, 1, n);
            errno = 33;
            cfree(p);
            free_sized(q, n);
            free_aligned_sized(r, 64, n);
            CHECK(errno == 33);
        }
    }
    CHECK(rss_kib() < before + 64 * 1024);
}

static const struct part PARTS[] = {
    {"alignment", alignment},
    {"zero_sizes", zero_sizes},
    {"errno_kept", errno_kept},
    {"too_much", too_much},
    {"overflow", overflow},
    {"realloc_ends", realloc_ends},
    {"realloc_jumps", realloc_jumps},
    {"realloc_steps", realloc_steps},
    {"posix_memalign_errors", posix_memalign_errors},
    {"aligned_alloc_errors", aligned_alloc_errors},
    {"alignments", alignments},
    {"calloc_zeroes", calloc_zeroes},
    {"usable", usable},
    {"other_frees", other_frees},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

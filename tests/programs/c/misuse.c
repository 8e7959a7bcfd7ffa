/* Passes a bad pointer. The first argument chooses which; prints the address first. */
#define _GNU_SOURCE
#include "check.h"
#include "misuse.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

extern void cfree(void *) __attribute__((weak));

static void *freeing_thread(void *object) {
    free(object);
    return NULL;
}

static void in_thread(void *object) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, freeing_thread, object) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void double_free(size_t size) {
    void *p = expect(malloc(size));
    free(p);
    free(p);
}

static void double_small(void) { double_free(48); }
static void double_large(void) { double_free(MIB); }
static void double_huge(void) { double_free(64 * MIB); }

/* Others come and go meanwhile. */
static void double_later(size_t size) {
    void *others[8];
    void *p = expect(malloc(size));
    for (int i = 0; i < 8; i++)
        others[i] = malloc(size + size / 2);
    free(p);
    for (int i = 0; i < 8; i++)
        free(others[i]);
    free(p);
}

static void double_large_later(void) { double_later(MIB); }
static void double_huge_later(void) { double_later(64 * MIB); }

static void double_large_from_thread(void) {
    void *p = expect(malloc(3 * MIB));
    in_thread(p);
    in_thread(p);
}

/* The library may keep the mapping for the next one. */
static void double_huge_delayed(void) {
    for (int i = 0; i < 4; i++)
        free(malloc(128 * MIB));
    double_free(128 * MIB);
}

/* The mapping grows where it cannot stay. */
static void moved_huge(void) {
    char *p = expect(malloc(64 * MIB));
    CHECK(mmap(p + 64 * MIB, MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) || 1);
    CHECK(realloc(p, 256 * MIB) != p);
    free(p);
}

static void double_small_later(void) {
    void *others[2000];
    void *p = expect(malloc(48));
    for (int i = 0; i < 2000; i++)
        others[i] = malloc(48);
    for (int i = 0; i < 1000; i += 2)
        free(others[i]);
    free(p);
    for (int i = 1000; i < 2000; i += 2)
        free(others[i]);
    free(p);
}

/* Frees all other objects of the slab too: the slab itself may be gone. */
static void double_small_of_empty_slab(void) {
    void *others[2000];
    void *p = expect(malloc(48));
    for (int i = 0; i < 2000; i++)
        others[i] = malloc(48);
    free(p);
    for (int i = 0; i < 2000; i++)
        free(others[i]);
    free(p);
}

static void double_from_thread(void) {
    void *p = expect(malloc(48));
    free(p);
    in_thread(p);
}

static void double_after_thread(void) {
    void *p = expect(malloc(48));
    in_thread(p);
    free(p);
}

static void double_before_exit(void) {
    void *p = expect(malloc(1000));
    free(p);
    cfree(p);
}

static void inside(size_t size, size_t offset) {
    char *p = malloc(size);
    free(expect(p + offset));
}

static void inside_small_1(void) { inside(160, 1); }
static void inside_small_16(void) { inside(160, 16); }
static void inside_large_16(void) { inside(MIB, 16); }
static void inside_large_page(void) { inside(MIB, 65536); }
static void inside_huge_16(void) { inside(64 * MIB, 16); }
static void inside_huge_end(void) { inside(64 * MIB, 64 * MIB - 4096); }

static int data[100] = {1};

static void stack(void) {
    int here[100];
    free(expect(here));
}

static void statics(void) { free(expect(data)); }
static void text(void) { free(expect((void *)stack)); }
static void last_byte(void) { free(expect((void *)UINTPTR_MAX)); }
static void low(void) { free(expect((void *)8)); }
static void high(void) { free(expect((void *)0xffff800000000000)); }
static void noncanonical(void) { free(expect((void *)0x4242424242424240)); }

static void *mapped(void) {
    void *p = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    return expect(p);
}

static void foreign(void) { free(mapped()); }
static void realloc_foreign(void) { CHECK(realloc(mapped(), 100)); }
static void reallocarray_foreign(void) { CHECK(reallocarray(mapped(), 10, 10)); }
static void realloc_foreign_to_0(void) { CHECK(realloc(mapped(), 0)); }

static void realloc_freed(size_t size) {
    void *p = expect(malloc(size));
    free(p);
    CHECK(realloc(p, size * 2));
}

static void realloc_freed_small(void) { realloc_freed(48); }
static void realloc_freed_large(void) { realloc_freed(MIB); }
static void realloc_freed_huge(void) { realloc_freed(64 * MIB); }

static void realloc_inside(void) {
    char *p = malloc(160);
    CHECK(realloc(expect(p + 32), 1000));
}

static void usable_garbage(void) { CHECK(malloc_usable_size(expect((void *)0x123456789ab0))); }

static void usable_freed(void) {
    void *p = expect(malloc(48));
    free(p);
    CHECK(malloc_usable_size(p));
}

static void free_sized_twice(void) {
    void *p = expect(malloc(48));
    free(p);
    free_sized(p, 48);
}

static void free_aligned_sized_twice(void) {
    void *p = expect(aligned_alloc(64, 64));
    free(p);
    free_aligned_sized(p, 64, 64);
}

static void double_zero(void) { double_free(0); }

static void double_calloc(void) {
    void *p = expect(calloc(1, 100000));
    free(p);
    free(p);
}

static void double_aligned(void) {
    void *p = expect(aligned_alloc(4 * MIB, 100));
    free(p);
    free(p);
}

static void inside_aligned(void) {
    char *p = aligned_alloc(4096, 100);
    free(expect(p + 64));
}

/* Memory that realloc cut off belongs to no object, nor does a pointer that it has moved away from.
 */
static void cut_off_large(void) {
    char *p = realloc(malloc(4 * MIB), MIB);
    free(expect(p + 3 * MIB));
}

static void cut_off_huge(void) {
    char *p = realloc(malloc(128 * MIB), 64 * MIB);
    free(expect(p + 100 * MIB));
}

static void moved_small(void) {
    void *p = expect(malloc(48));
    CHECK(realloc(p, 5000) != p);
    free(p);
}

static void usable_inside(void) {
    char *p = malloc(160);
    CHECK(malloc_usable_size(expect(p + 16)));
}

static void usable_inside_large(void) {
    char *p = malloc(MIB);
    CHECK(malloc_usable_size(expect(p + 4096)));
}

/* The place behind the first object of a slab, refilled but not allocated. */
static void not_given_yet(void) {
    char *p = malloc(48);
    free(expect(p + 48));
    void *a = malloc(48), *b = malloc(48);
    CHECK(a != b);
}

/* Never allocated: the hugepage behind the heap. */
static void unallocated(void) {
    char *p = malloc(MIB);
    free(expect((void *)(((uintptr_t)p & ~(2 * MIB - 1)) + 512 * MIB)));
}

static const struct part PARTS[] = {
    {"double_small", double_small},
    {"double_small_later", double_small_later},
    {"double_small_of_empty_slab", double_small_of_empty_slab},
    {"double_from_thread", double_from_thread},
    {"double_after_thread", double_after_thread},
    {"double_before_exit", double_before_exit},
    {"double_large", double_large},
    {"double_huge", double_huge},
    {"double_large_later", double_large_later},
    {"double_large_from_thread", double_large_from_thread},
    {"double_huge_later", double_huge_later},
    {"double_huge_delayed", double_huge_delayed},
    {"moved_huge", moved_huge},
    {"inside_small_1", inside_small_1},
    {"inside_small_16", inside_small_16},
    {"inside_large_16", inside_large_16},
    {"inside_large_page", inside_large_page},
    {"inside_huge_16", inside_huge_16},
    {"inside_huge_end", inside_huge_end},
    {"stack", stack},
    {"statics", statics},
    {"text", text},
    {"last_byte", last_byte},
    {"low", low},
    {"high", high},
    {"noncanonical", noncanonical},
    {"foreign", foreign},
    {"realloc_foreign", realloc_foreign},
    {"reallocarray_foreign", reallocarray_foreign},
    {"realloc_foreign_to_0", realloc_foreign_to_0},
    {"realloc_freed_small", realloc_freed_small},
    {"realloc_freed_large", realloc_freed_large},
    {"realloc_freed_huge", realloc_freed_huge},
    {"realloc_inside", realloc_inside},
    {"usable_garbage", usable_garbage},
    {"usable_freed", usable_freed},
    {"free_sized_twice", free_sized_twice},
    {"free_aligned_sized_twice", free_aligned_sized_twice},
    {"double_zero", double_zero},
    {"double_calloc", double_calloc},
    {"double_aligned", double_aligned},
    {"inside_aligned", inside_aligned},
    {"cut_off_large", cut_off_large},
    {"cut_off_huge", cut_off_huge},
    {"moved_small", moved_small},
    {"usable_inside", usable_inside},
    {"usable_inside_large", usable_inside_large},
    {"not_given_yet", not_given_yet},
    {"unallocated", unallocated},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

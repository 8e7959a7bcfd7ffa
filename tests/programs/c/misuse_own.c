/* Passes a bad size, alignment or heap. The first argument chooses which; prints the address first.
 */
#define _GNU_SOURCE
#include "../../../crates/preload/include/craton.h"
#include "check.h"
#include "misuse.h"

static void size_too_large(void) { free_sized(expect(malloc(48)), 100); }
static void size_too_small(void) { free_sized(expect(malloc(1000)), 100); }
static void size_of_large(void) { free_sized(expect(malloc(MIB)), 2 * MIB); }
static void size_of_huge(void) { free_sized(expect(malloc(64 * MIB)), 32 * MIB); }
static void size_beyond_all(void) { free_sized(expect(malloc(48)), SIZE_MAX); }
static void aligned_size(void) { free_aligned_sized(expect(aligned_alloc(64, 128)), 64, 1000); }

static void aligned_otherwise(void) {
    char *p = malloc(48);
    if ((uintptr_t)p % 4096 == 0)
        p = malloc(48);
    free_aligned_sized(expect(p), 4096, 48);
}

static void aligned_to_no_power(void) { free_aligned_sized(expect(aligned_alloc(64, 128)), 3, 128); }

static void size_of_owned(void) { free_sized(expect(craton_heap_alloc(craton_heap_create(NULL), 48)), 4000); }
static void size_of_cold(void) { free_sized(expect(craton_alloc_hinted(48, 1, CRATON_COLD)), 4000); }

static void double_in_heap(void) {
    craton_heap *heap = craton_heap_create(NULL);
    void *p = craton_heap_alloc(heap, 48);
    CHECK(craton_heap_alloc(heap, 48));
    craton_heap_free(heap, expect(p));
    craton_heap_free(heap, p);
}

static void double_by_free(void) {
    craton_heap *heap = craton_heap_create(NULL);
    void *p = craton_heap_alloc(heap, 48);
    CHECK(craton_heap_alloc(heap, 48));
    free(expect(p));
    free(p);
}

static void inside_heap(void) {
    char *p = craton_heap_alloc(craton_heap_create(NULL), 160);
    free(expect(p + 16));
}

static void inside_large_of_heap(void) {
    char *p = craton_heap_alloc(craton_heap_create(NULL), MIB);
    free(expect(p + 8192));
}

static void other_heap(void) {
    craton_heap *a = craton_heap_create(NULL), *b = craton_heap_create(NULL);
    craton_heap_free(b, expect(craton_heap_alloc(a, 48)));
}

static void no_object_of_heap(void) {
    craton_heap *heap = craton_heap_create(NULL);
    CHECK(craton_heap_realloc(heap, expect(malloc(48)), 100));
}

static void destroyed_twice(void) {
    craton_heap *heap = expect(craton_heap_create(NULL));
    craton_heap_destroy(heap);
    craton_heap_destroy(heap);
}

static void used_after_destroy(void) {
    craton_heap *heap = craton_heap_create(NULL);
    craton_heap_destroy(heap);
    CHECK(craton_heap_create(NULL));
    craton_heap_alloc(expect(heap), 10);
}

static void freed_after_destroy(void) {
    craton_heap *heap = craton_heap_create(NULL);
    void *p = craton_heap_alloc(heap, 48);
    craton_heap_destroy(heap);
    free(expect(p));
}

static int nothing;
static void no_heap(void) { craton_heap_alloc(expect(&nothing), 10); }

static void batch_twice(void) {
    void *objects[100];
    CHECK(craton_alloc_batch(48, 100, objects) == 100);
    objects[77] = expect(objects[50]);
    craton_free_batch(objects, 100);
}

static const struct part PARTS[] = {
    {"size_too_large", size_too_large},
    {"size_too_small", size_too_small},
    {"size_of_large", size_of_large},
    {"size_of_huge", size_of_huge},
    {"size_beyond_all", size_beyond_all},
    {"aligned_size", aligned_size},
    {"aligned_otherwise", aligned_otherwise},
    {"aligned_to_no_power", aligned_to_no_power},
    {"size_of_owned", size_of_owned},
    {"size_of_cold", size_of_cold},
    {"double_in_heap", double_in_heap},
    {"double_by_free", double_by_free},
    {"inside_heap", inside_heap},
    {"inside_large_of_heap", inside_large_of_heap},
    {"other_heap", other_heap},
    {"no_object_of_heap", no_object_of_heap},
    {"destroyed_twice", destroyed_twice},
    {"used_after_destroy", used_after_destroy},
    {"freed_after_destroy", freed_after_destroy},
    {"no_heap", no_heap},
    {"batch_twice", batch_twice},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

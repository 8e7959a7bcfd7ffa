/* Passes a bad object or cache to craton_cache_*. The first argument chooses which; prints the
 * address first. */
#define _GNU_SOURCE
#include "../../../crates/preload/include/craton.h"
#include "check.h"
#include "misuse.h"

static int construct(void *object, void *size) {
    memset(object, 1, (size_t)(uintptr_t)size);
    return 0;
}

static craton_cache *create(const char *name, size_t size, int built) {
    struct craton_cache_options options = {.size = sizeof options, .name = name, .object_size = size};
    if (built) {
        options.constructor = construct;
        options.argument = (void *)(uintptr_t)size;
    }
    craton_cache *cache = craton_cache_create(&options);
    CHECK(cache);
    return cache;
}

static void other_cache(void) {
    craton_cache *a = create("a", 48, 0), *b = create("b", 48, 1);
    void *p = craton_cache_alloc(a), *q = craton_cache_alloc(b);
    CHECK(p && q);
    craton_cache_free(b, expect(p));
}

static void of_malloc(void) {
    craton_cache *cache = create("a", 48, 0);
    CHECK(craton_cache_alloc(cache));
    craton_cache_free(cache, expect(malloc(48)));
}

static void of_stack(void) {
    int here;
    craton_cache_free(create("a", 48, 0), expect(&here));
}

static void plain_free(void) { free(expect(craton_cache_alloc(create("connections", 48, 1)))); }
static void plain_realloc(void) { CHECK(realloc(expect(craton_cache_alloc(create("connections", 48, 1))), 100)); }
static void heap_free(void) { craton_heap_free(craton_heap_create(NULL), expect(craton_cache_alloc(create("c", 48, 1)))); }

static void twice(size_t size, int built, int others) {
    craton_cache *cache = create("twice", size, built);
    void *p = craton_cache_alloc(cache), *more[100];
    for (int i = 0; i < others; i++)
        more[i] = craton_cache_alloc(cache);
    craton_cache_free(cache, expect(p));
    for (int i = 0; i < others; i++)
        craton_cache_free(cache, more[i]);
    craton_cache_free(cache, p);
}
static void twice_small(void) { twice(8, 0, 0); }
static void twice_raw(void) { twice(100, 0, 3); }
static void twice_built_small(void) { twice(24, 1, 3); }
static void twice_built(void) { twice(192, 1, 3); }
static void twice_large(void) { twice(5000, 1, 3); }
static void twice_later(void) { twice(100, 1, 100); }

static void twice_after_reap(void) {
    craton_cache *cache = create("reaped", 100, 1);
    void *p = craton_cache_alloc(cache), *q = craton_cache_alloc(cache);
    CHECK(q);
    craton_cache_free(cache, expect(p));
    craton_cache_reap(cache);
    craton_cache_free(cache, p);
}

static void middle(size_t size, size_t offset, int built) {
    craton_cache *cache = create("middle", size, built);
    craton_cache_free(cache, expect((char *)craton_cache_alloc(cache) + offset));
}
static void middle_small(void) { middle(48, 8, 0); }
static void middle_odd(void) { middle(48, 1, 1); }
static void middle_large(void) { middle(20000, 8192, 1); }

static void destroyed_twice(void) {
    craton_cache *cache = expect(create("gone", 48, 0));
    craton_cache_destroy(cache);
    craton_cache_destroy(cache);
}

static void used_after_destroy(void) {
    craton_cache *cache = expect(create("gone", 48, 0));
    craton_cache_free(cache, craton_cache_alloc(cache));
    craton_cache_destroy(cache);
    CHECK(craton_cache_alloc(create("new", 48, 0)));
    craton_cache_alloc(cache);
}

static void freed_after_destroy(void) {
    craton_cache *cache = expect(create("gone", 48, 0));
    void *p = craton_cache_alloc(cache);
    craton_cache_free(cache, p);
    craton_cache_destroy(cache);
    craton_cache_free(cache, p);
}

static int nothing;
static void no_cache(void) { craton_cache_alloc(expect(&nothing)); }
static void no_cache_after_use(void) {
    CHECK(craton_cache_alloc(create("a", 48, 0)));
    craton_cache_alloc(expect(&nothing));
}
static void null_cache(void) {
    craton_cache *cache = create("a", 48, 0);
    craton_cache_free(cache, craton_cache_alloc(cache));
    puts("0x0");
    fflush(stdout);
    craton_cache_free(NULL, &nothing);
}

static const struct part PARTS[] = {
    {"other_cache", other_cache},
    {"of_malloc", of_malloc},
    {"of_stack", of_stack},
    {"plain_free", plain_free},
    {"plain_realloc", plain_realloc},
    {"heap_free", heap_free},
    {"twice_small", twice_small},
    {"twice_raw", twice_raw},
    {"twice_built_small", twice_built_small},
    {"twice_built", twice_built},
    {"twice_large", twice_large},
    {"twice_later", twice_later},
    {"twice_after_reap", twice_after_reap},
    {"middle_small", middle_small},
    {"middle_odd", middle_odd},
    {"middle_large", middle_large},
    {"destroyed_twice", destroyed_twice},
    {"used_after_destroy", used_after_destroy},
    {"freed_after_destroy", freed_after_destroy},
    {"no_cache", no_cache},
    {"no_cache_after_use", no_cache_after_use},
    {"null_cache", null_cache},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

/* Attacks on the memory of free objects. Each part makes one wrong write, or a few, and then
 * allocates as a program would. It ends with status 0 and a word:
 *   arbitrary    malloc returned an address that the attacker chose
 *   overlapping  malloc returned memory of a live object
 *   harmless     neither
 * unless the library ends the process first. */
#define _GNU_SOURCE
#include "../../../crates/preload/include/craton.h"
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

#define MOST 4096

static char *live[MOST];
static size_t live_size[MOST], lives;
/* What attackers aim at: both could hold an object of 48 bytes. */
static _Alignas(64) char target[4096];
static char *stack_target;

static int in_child;

static void say(const char *what) {
    if (in_child)
        _exit(*what == 'h' ? 0 : *what == 'o' ? 3 : 4);
    puts(what);
    fflush(stdout);
    _exit(0);
}

/* Enters an object that malloc returned. */
static char *enter(void *object, size_t size) {
    char *p = object;
    CHECK(p && lives < MOST);
    if ((p + size > target && p < target + sizeof target) || (stack_target && p + size > stack_target && p < stack_target + 256))
        say("arbitrary");
    for (size_t i = 0; i < lives; i++)
        if (p < live[i] + live_size[i] && live[i] < p + size)
            say("overlapping");
    live[lives] = p;
    live_size[lives++] = size;
    return p;
}

static char *take(size_t size) { return enter(malloc(size), size); }

/* Removes an object from the list of live ones; `free` is the caller's. */
static char *leave(char *object) {
    for (size_t i = 0; i < lives; i++)
        if (live[i] == object) {
            live[i] = live[--lives];
            live_size[i] = live_size[lives];
            break;
        }
    return object;
}

static void give(char *object) { free(leave(object)); }

static void take_many(size_t size, int n) {
    while (n-- > 0)
        take(size);
}

static uintptr_t *words(void *object) { return object; }

/* Fills lists and slabs of a class before the attack. */
static void warm(size_t size) {
    char *some[32];
    for (int i = 0; i < 32; i++)
        some[i] = malloc(size);
    for (int i = 0; i < 32; i += 2)
        free(some[i]);
}

static char *freed(size_t size) {
    warm(size);
    char *p = take(size);
    give(p);
    return p;
}

static void lead_to(size_t size, void *to) {
    words(freed(size))[0] = (uintptr_t)to;
    take_many(size, 100);
    say("harmless");
}

static void link_of_8_bytes(void) { lead_to(48, target + 64); }
static void link_of_1000(void) { lead_to(1000, target + 64); }
static void link_of_16(void) { lead_to(16, target + 64); }
static void link_to_unaligned(void) { lead_to(48, target + 67); }
static void link_to_code(void) { lead_to(48, (void *)(uintptr_t)&link_of_8_bytes); }

static void link_to_null(void) { lead_to(48, NULL); }
static void link_to_nowhere(void) { lead_to(48, (void *)(uintptr_t)0x4141414141414141); }

static void link_of_16_bytes(void) {
    uintptr_t *p = words(freed(48));
    p[0] = (uintptr_t)(target + 64);
    p[1] = 0;
    take_many(48, 100);
    say("harmless");
}

static void link_to_stack(void) {
    char here[256];
    memset(here, 0, sizeof here);
    stack_target = here;
    lead_to(48, here + 64 - (uintptr_t)here % 16);
}

static void link_to_itself(void) {
    uintptr_t *p = words(freed(48));
    p[0] = (uintptr_t)p;
    take_many(48, 100);
    say("harmless");
}

static void link_to_live(void) {
    char *other = take(48);
    lead_to(48, other);
}

static void link_to_smaller(void) {
    char *others[8];
    for (int i = 0; i < 8; i++)
        others[i] = take(16);
    give(others[3]);
    lead_to(1000, others[3]);
}

static void link_into_large(void) {
    char *large = take(MIB);
    memset(large, 'x', MIB);
    lead_to(48, large + 4096);
}

static void link_by_calloc(void) {
    words(freed(48))[0] = (uintptr_t)(target + 64);
    for (int i = 0; i < 100; i++)
        enter(calloc(1, 48), 48);
    say("harmless");
}

static void link_by_aligned_alloc(void) {
    words(freed(64))[0] = (uintptr_t)(target + 64);
    for (int i = 0; i < 100; i++)
        enter(aligned_alloc(64, 64), 64);
    say("harmless");
}

static void link_by_realloc(void) {
    words(freed(48))[0] = (uintptr_t)(target + 64);
    for (int i = 0; i < 100; i++)
        enter(realloc(NULL, 48), 48);
    say("harmless");
}

static void link_by_batch(void) {
    void *out[100];
    words(freed(48))[0] = (uintptr_t)(target + 64);
    size_t n = craton_alloc_batch(48, 100, out);
    for (size_t i = 0; i < n; i++)
        enter(out[i], 48);
    say("harmless");
}

static void link_by_realloc_of_another(void) {
    words(freed(1000))[0] = (uintptr_t)(target + 64);
    for (int i = 0; i < 100; i++) {
        char *p = leave(take(100));
        enter(realloc(p, 1000), 1000);
    }
    say("harmless");
}

/* Two objects of which one begins where the other ends. */
static void overflow(size_t size) {
    size_t step = malloc_usable_size(take(size));
    for (int i = 0; i < 200; i++)
        take(size);
    for (size_t i = 0; i < lives; i++)
        for (size_t j = 0; j < lives; j++)
            if (live_size[i] == size && live[j] == live[i] + step) {
                char *before = live[i], *behind = live[j];
                give(behind);
                *words(before + step) = (uintptr_t)(target + 64);
                take_many(size, 200);
                say("harmless");
            }
    say("no neighbours");
}

static void overflow_48(void) { overflow(48); }
static void overflow_1000(void) { overflow(1000); }
static void overflow_20000(void) { overflow(20000); }

static void low_byte(size_t size) {
    warm(size);
    char *p[64];
    for (int i = 0; i < 64; i++)
        p[i] = take(size);
    for (int i = 0; i < 64; i += 2)
        give(p[i]);
    *(unsigned char *)p[62] ^= 0x10;
    take_many(size, 300);
    say("harmless");
}

static void low_byte_48(void) { low_byte(48); }
static void low_byte_1000(void) { low_byte(1000); }
static void low_byte_20000(void) { low_byte(20000); }

static void freed_again(size_t size) {
    char *p = freed(size);
    words(p)[1] = 0;
    free(p);
    take_many(size, 100);
    say("harmless");
}

static void freed_again_48(void) { freed_again(48); }
static void freed_again_1000(void) { freed_again(1000); }
static void freed_again_20000(void) { freed_again(20000); }

/* Freed again while it is on its slab, which then counts one object too few: it seems complete
 * while another one is live. */
static void freed_again_on_slab(size_t size) {
    char *p[1000];
    int n = 1000;
    for (int i = 0; i < n; i++)
        p[i] = malloc(size);
    char *kept = enter(p[n / 2], size), *twice = p[n / 2 + 1];
    for (int i = 0; i < n * 3 / 4; i++)
        if (p[i] != kept)
            free(p[i]);
    memset(twice, 0, size);
    free(twice);
    for (int i = n * 3 / 4; i < n; i++)
        free(p[i]);
    for (int i = 0; i < 1000; i++)
        take(10000 + i * 50);
    say("harmless");
}

static void freed_again_on_slab_48(void) { freed_again_on_slab(48); }
static void freed_again_on_slab_1000(void) { freed_again_on_slab(1000); }

/* A slab's list that ends too early, while the slab counts free objects. */
static void link_to_null_on_slab(void) {
    char *p[20];
    for (int i = 0; i < 20; i++)
        p[i] = malloc(20000);
    for (int i = 0; i < 20; i += 2)
        free(p[i]);
    words(p[14])[0] = 0;
    take_many(20000, 100);
    say("harmless");
}

/* All of an object, as by a memset. */
static void cleared(void) {
    memset(freed(48), 0, 48);
    take_many(48, 100);
    say("harmless");
}

static void filled(void) {
    memset(freed(48), 'A', 48);
    take_many(48, 100);
    say("harmless");
}

/* The first cut objects of a slab were never freed. */
static void never_out(void) {
    char *p = malloc(48);
    uintptr_t *next = words(p + malloc_usable_size(p));
    next[0] = (uintptr_t)(target + 64);
    take_many(48, 200);
    say("harmless");
}

/* Most of 300 objects go to their slabs. */
static void deep(size_t size, int which, int word) {
    char *p[300];
    for (int i = 0; i < 300; i++)
        p[i] = take(size);
    for (int i = 0; i < 300; i++)
        give(p[i]);
    words(p[which])[word] = (uintptr_t)(target + 64);
    take_many(size, 600);
    say("harmless");
}

static void deep_0(void) { deep(48, 0, 0); }
static void deep_100(void) { deep(48, 100, 0); }
static void deep_200(void) { deep(48, 200, 0); }
static void deep_250(void) { deep(48, 250, 0); }
static void deep_290(void) { deep(48, 290, 0); }
static void deep_299(void) { deep(48, 299, 0); }
static void deep_mark_0(void) { deep(48, 0, 1); }
static void deep_mark_250(void) { deep(48, 250, 1); }

/* The damage is there before the lists go back to the slabs. */
static void flushed(int word) {
    char *p[3000];
    for (int i = 0; i < 3000; i++)
        p[i] = take(48);
    for (int i = 0; i < 10; i++)
        give(p[i]);
    words(p[9])[word] = (uintptr_t)(target + 64);
    for (int i = 10; i < 3000; i++)
        give(p[i]);
    craton_release();
    take_many(48, 3000);
    say("harmless");
}

static void flushed_link(void) { flushed(0); }
static void flushed_mark(void) { flushed(1); }

static void flushed_live(void) {
    char *p[3000];
    for (int i = 0; i < 3000; i++)
        p[i] = take(48);
    for (int i = 0; i < 10; i++)
        give(p[i]);
    words(p[9])[0] = (uintptr_t)p[2000];
    words(p[2000])[0] = (uintptr_t)p[8];
    for (int i = 10; i < 3000; i++)
        if (i != 2000)
            give(p[i]);
    craton_release();
    for (int i = 0; i < 200; i++)
        take(1000);
    take_many(48, 800);
    say("harmless");
}

/* Exits with 3 if malloc returns an object twice after the first word of a free one led to `to`,
 * another free one. */
static void follow(char *from, char *to, char **kept, int n, size_t size, int release) {
    in_child = 1;
    CHECK(freopen("/dev/null", "w", stderr));
    words(from)[0] = (uintptr_t)to;
    take(size);
    if (malloc(size) != to)
        _exit(0);
    enter(to, size);
    for (int i = 0; i < n; i++)
        enter(kept[i], size);
    if (release)
        craton_release();
    take_many(size, 1200);
    take_many(8000, 200);
    say("harmless");
}

static int child_says(pid_t child) {
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 0;
}

/* A link to another free object: on the thread's list, on a slab in use, or on a complete slab.
 * Tries many targets behind lists of several lengths: some have as many objects behind them as the
 * list should have, so that no count shows it. */
static void link_to_freed(size_t size, int n, int every, int release) {
    char **p = malloc(n * sizeof *p), *kept[16];
    for (int i = 0; i < n; i++)
        p[i] = malloc(size);
    for (int i = 0; i < n; i++)
        if (i % every || i < n / 2)
            free(p[i]);
        else
            enter(p[i], size);
    for (int n_kept = 0; n_kept < 6; n_kept++) {
        for (int i = 0; i < n_kept; i++)
            kept[i] = malloc(size);
        char *other = malloc(size), *from = malloc(size);
        free(other);
        free(from);
        for (int to = 0; to < n; to += n / 300) {
            pid_t child = fork();
            if (child == 0)
                follow(from, p[to], kept, n_kept, size, release);
            int said = child_says(child);
            if (said)
                say(said == 3 ? "overlapping" : "arbitrary");
        }
        for (int i = 0; i < n_kept; i++)
            free(kept[i]);
    }
    say("harmless");
}

static void link_to_freed_48(void) { link_to_freed(48, 3000, 1 << 30, 0); }
static void link_to_freed_48_released(void) { link_to_freed(48, 3000, 1 << 30, 1); }
static void link_to_freed_among_live(void) { link_to_freed(200, 2100, 20, 0); }

static void heap_link(size_t size, int word) {
    craton_heap *heap = craton_heap_create(NULL);
    char *p[20];
    for (int i = 0; i < 20; i++)
        p[i] = craton_heap_alloc(heap, size);
    for (int i = 0; i < 20; i += 2)
        craton_heap_free(heap, p[i]);
    words(p[18])[word] = (uintptr_t)(target + 64);
    for (int i = 0; i < 100; i++)
        enter(craton_heap_alloc(heap, size), size);
    say("harmless");
}

static void heap_link_48(void) { heap_link(48, 0); }
static void heap_link_1000(void) { heap_link(1000, 0); }
static void heap_mark(void) { heap_link(48, 1); }

static void heap_itself(void) {
    craton_heap *heap = craton_heap_create(NULL);
    char *p = craton_heap_alloc(heap, 48);
    CHECK(craton_heap_alloc(heap, 48));
    craton_heap_free(heap, p);
    words(p)[0] = (uintptr_t)p;
    for (int i = 0; i < 100; i++)
        enter(craton_heap_alloc(heap, 48), 48);
    say("harmless");
}

static void hinted_link(void) {
    char *p[20];
    for (int i = 0; i < 20; i++)
        p[i] = craton_alloc_hinted(48, 1, CRATON_COLD);
    for (int i = 0; i < 20; i += 2)
        free(p[i]);
    words(p[18])[0] = (uintptr_t)(target + 64);
    for (int i = 0; i < 100; i++)
        enter(craton_alloc_hinted(48, 1, CRATON_COLD), 48);
    say("harmless");
}

/* A read of a freed object shows its mark, which may depend on a key and the address. */
static void forged(int how) {
    uintptr_t *p = words(freed(48)), *fake = words(target + 64);
    uintptr_t mark = p[1], from = (uintptr_t)p, to = (uintptr_t)fake;
    switch (how) {
    case 0: fake[1] = mark; break;
    case 1: fake[1] = mark ^ from ^ to; break;
    case 2: fake[1] = mark + (to - from); break;
    case 3: fake[1] = mark / from * to; break;
    case 4: fake[1] = (mark * to) / from; break;
    }
    p[0] = to;
    take_many(48, 100);
    say("harmless");
}

static void forged_copy(void) { forged(0); }
static void forged_by_xor(void) { forged(1); }
static void forged_by_sum(void) { forged(2); }
static void forged_by_factor(void) { forged(3); }
static void forged_by_ratio(void) { forged(4); }

static pthread_barrier_t barrier;
static char *of_thread[64];

static void *frees_and_waits(void *unused) {
    (void)unused;
    /* A thread that allocates much gets a thread cache. */
    for (int i = 0; i < 200000; i++)
        free(malloc(48));
    for (int i = 0; i < 64; i++)
        of_thread[i] = malloc(48);
    for (int i = 0; i < 64; i++)
        free(of_thread[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 64; i++)
        take(48);
    say("harmless");
    return NULL;
}

static void link_in_other_thread(void) {
    pthread_t thread;
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, frees_and_waits, NULL) == 0);
    pthread_barrier_wait(&barrier);
    words(of_thread[63])[0] = (uintptr_t)(target + 64);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
}

/* Objects that one thread allocates and another frees pass between them in batches. */
static char *passed[2000];

static void *frees_all(void *unused) {
    (void)unused;
    for (int i = 0; i < 2000; i++)
        free(passed[i]);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static void passed_on(int word, void *to) {
    pthread_t thread;
    CHECK(pthread_barrier_init(&barrier, NULL, 2) == 0);
    for (int i = 0; i < 2000; i++)
        passed[i] = malloc(48);
    CHECK(pthread_create(&thread, NULL, frees_all, NULL) == 0);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 2000; i += 50)
        words(passed[i])[word] = to ? (uintptr_t)to : (uintptr_t)passed[i];
    take_many(48, 3000);
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    take_many(48, 500);
    say("harmless");
}

static void passed_link(void) { passed_on(0, target + 64); }
static void passed_mark(void) { passed_on(1, target + 64); }
static void passed_to_itself(void) { passed_on(0, NULL); }

/* Frees that no program may do. */
static void free_fake(void) {
    words(target)[6] = 49;
    free(target + 64);
    take_many(48, 100);
    say("harmless");
}

static void free_interior(void) {
    free(take(160) + 16);
    take_many(160, 100);
    say("harmless");
}

static void free_foreign(void) {
    free((void *)(uintptr_t)0x7ffff0001000);
    say("harmless");
}

static void free_twice(void) {
    free(freed(48));
    take_many(48, 100);
    say("harmless");
}

static void *frees(void *object) {
    free(object);
    return NULL;
}

static void free_twice_in_thread(void) {
    pthread_t thread;
    char *p = freed(48);
    CHECK(pthread_create(&thread, NULL, frees, p) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    take_many(48, 100);
    say("harmless");
}

/* The object before a slab's tail: its neighbour is not where an object of the size would be. */
static char *last_of_slab(size_t size, size_t step) {
    for (int i = 0; i < 1000; i++)
        take(size);
    for (size_t i = 0; i < lives; i++)
        for (size_t j = 0; j < lives; j++)
            if (live[j] > live[i] + step && live[j] < live[i] + 2 * step && (uintptr_t)live[j] % 8192 == 0 &&
                malloc_usable_size(live[i]) == step && malloc_usable_size(live[j]) == step)
                return live[i];
    say("no tail");
    return NULL;
}

static char *tail(size_t size) {
    /* The first objects may be borrowed from a larger size. */
    take_many(size, 100);
    size_t step = malloc_usable_size(take(size));
    return last_of_slab(size, step) + step;
}

static void free_tail(size_t size) {
    free(tail(size));
    take_many(size, 100);
    say("harmless");
}

static void free_tail_48(void) { free_tail(48); }
static void free_tail_80(void) { free_tail(80); }
static void free_tail_100(void) { free_tail(100); }
static void free_tail_1100(void) { free_tail(1100); }

static void resize_tail(void) {
    char *p = realloc(tail(100), 110);
    if (p)
        enter(p, 110);
    take_many(100, 100);
    say("harmless");
}

static void measure_tail(void) {
    say(malloc_usable_size(tail(100)) > 0 ? "overlapping" : "harmless");
}

/* A place that its slab has not cut yet: malloc returns it for this free, and later once more. */
static void free_uncut(size_t size, int places) {
    char *p = take(size);
    free(p + places * malloc_usable_size(p));
    take_many(size, 1000);
    say("harmless");
}

static void free_uncut_16(void) { free_uncut(16, 100); }
static void free_uncut_48(void) { free_uncut(48, 20); }
static void free_uncut_on_next_page(void) { free_uncut(3000, 4); }
static void free_uncut_10000(void) { free_uncut(10000, 1); }

static void resize_uncut(void) {
    char *p = take(48);
    char *q = realloc(p + 20 * 48, 40);
    if (q)
        enter(q, 40);
    take_many(48, 1000);
    say("harmless");
}

static int is_live(char *object) {
    for (size_t i = 0; i < lives; i++)
        if (live[i] == object)
            return 1;
    return 0;
}

/* An object that is freed again after its slab was cut anew: the first one of a slab is out. */
static void free_before_cut(size_t size, int n, int release) {
    char **old = malloc(n * sizeof *old), *p;
    for (int i = 0; i < n; i++)
        old[i] = malloc(size);
    for (int i = 0; i < n; i++)
        free(old[i]);
    if (release)
        malloc_trim(0);
    while (lives < 2000) {
        p = take(size);
        if ((uintptr_t)p % 8192 == 0 && !is_live(p + 100 * size))
            for (int i = 0; i < n; i++)
                if (old[i] == p + 100 * size) {
                    free(old[i]);
                    take_many(size, 1000);
                    say("harmless");
                }
    }
    say("harmless");
}

static void free_before_cut_48(void) { free_before_cut(48, 60000, 1); }
static void free_before_cut_64(void) { free_before_cut(64, 60000, 1); }
static void free_before_cut_kept(void) { free_before_cut(48, 3000, 0); }

/* The same in an object cache. */
static void cache_uncut(size_t size) {
    struct craton_cache_options options = {.size = sizeof options, .object_size = size};
    craton_cache *cache = craton_cache_create(&options);
    CHECK(cache);
    char *p = enter(craton_cache_alloc(cache), size);
    craton_cache_free(cache, p + 20 * size);
    for (int i = 0; i < 1000; i++)
        enter(craton_cache_alloc(cache), size);
    say("harmless");
}

static void cache_uncut_48(void) { cache_uncut(48); }
static void cache_uncut_160(void) { cache_uncut(160); }

/* What lists write into free objects must not be seen in new ones: it tells addresses. */
static void read_new(void) {
    for (size_t size = 16; size < 60000; size += size / 2)
        for (int i = 0; i < 200; i++) {
            uintptr_t *p = words(malloc(size));
            if (p[0] || p[1])
                say("address");
            if (i % 3)
                free(p);
        }
    say("harmless");
}

static void large_memory(size_t size) {
    char *p = take(size);
    give(p);
    if (size < 32 * MIB)
        memset(p, 'A', 64);
    take_many(size, 4);
    say("harmless");
}

static void large_memory_1m(void) { large_memory(MIB); }
static void large_memory_300k(void) { large_memory(300 * KIB); }

static void object_cache(void) {
    struct craton_cache_options options = {.size = sizeof options, .object_size = 48};
    craton_cache *cache = craton_cache_create(&options);
    CHECK(cache);
    char *p[20];
    for (int i = 0; i < 20; i++)
        p[i] = craton_cache_alloc(cache);
    for (int i = 0; i < 20; i += 2)
        craton_cache_free(cache, p[i]);
    for (int i = 0; i < 6; i++)
        words(p[18])[i] = (uintptr_t)(target + 64);
    for (int i = 0; i < 100; i++)
        enter(craton_cache_alloc(cache), 48);
    say("harmless");
}

#define PART(name) {#name, name}
static const struct part PARTS[] = {
    PART(link_of_8_bytes), PART(link_of_1000), PART(link_of_16), PART(link_to_unaligned), PART(link_to_code),
    PART(link_to_null), PART(link_to_nowhere),
    PART(link_of_16_bytes), PART(link_to_stack), PART(link_to_itself), PART(link_to_live), PART(link_to_smaller),
    PART(link_into_large), PART(link_by_calloc), PART(link_by_aligned_alloc), PART(link_by_realloc), PART(link_by_batch),
    PART(link_by_realloc_of_another), PART(overflow_48), PART(overflow_1000), PART(overflow_20000), PART(low_byte_48),
    PART(low_byte_1000), PART(low_byte_20000), PART(freed_again_48), PART(freed_again_1000), PART(freed_again_20000),
    PART(freed_again_on_slab_48), PART(freed_again_on_slab_1000), PART(link_to_null_on_slab),
    PART(cleared), PART(filled), PART(never_out), PART(deep_0), PART(deep_100), PART(deep_200), PART(deep_250),
    PART(deep_290), PART(deep_299), PART(deep_mark_0), PART(deep_mark_250), PART(flushed_link), PART(flushed_mark),
    PART(flushed_live), PART(link_to_freed_48), PART(link_to_freed_48_released),
    PART(link_to_freed_among_live), PART(heap_link_48), PART(heap_link_1000), PART(heap_mark), PART(heap_itself), PART(hinted_link),
    PART(forged_copy), PART(forged_by_xor), PART(forged_by_sum), PART(forged_by_factor), PART(forged_by_ratio),
    PART(link_in_other_thread), PART(passed_link), PART(passed_mark), PART(passed_to_itself), PART(free_fake),
    PART(free_interior), PART(free_foreign), PART(free_twice), PART(free_twice_in_thread), PART(large_memory_1m),
    PART(large_memory_300k), PART(object_cache), PART(free_tail_48), PART(free_tail_80), PART(free_tail_100),
    PART(free_tail_1100), PART(resize_tail), PART(measure_tail), PART(free_uncut_16), PART(free_uncut_48),
    PART(free_uncut_on_next_page), PART(free_uncut_10000), PART(resize_uncut), PART(free_before_cut_48),
    PART(free_before_cut_64), PART(free_before_cut_kept), PART(read_new), PART(cache_uncut_48),
    PART(cache_uncut_160), {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

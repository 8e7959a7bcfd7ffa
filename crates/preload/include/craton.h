/* Craton, a memory allocator: what it offers beyond malloc and free.
 * Any thread may call any function. No function throws. */
#ifndef CRATON_H
#define CRATON_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Statistics of the process. The counts are each exact; two read together may be a moment apart. */
struct craton_segment {
    uint64_t magic;             /* "\0CRATON1" as a little-endian number */
    uint64_t version;           /* of this layout: 1 */
/* begin: process, by cargo xtask tidy --fix */
    uint64_t pid; /* process id; the numbers of a forked child begin with its parent's */
    /* batches of objects that caches received, from slabs or from threads that had too many,
       since the start */
    uint64_t refills;
    /* objects in those batches; a cache serves the same object again and again, so that a
       program allocates more, since the start */
    uint64_t objects_out;
    /* objects above 128 KiB that came from the page heap, since the start */
    uint64_t large_allocs;
    /* objects with their own mapping: 32 MiB and more, or grown by moving pages, since the start */
    uint64_t huge_allocs;
    /* in slabs and large objects: what the program has, what caches keep, and what is free in
       slabs */
    uint64_t heap_in_use_bytes;
    /* of the heap that may have memory: what is in use, touched or not, and free memory that was
       not released. The difference to heap_in_use_bytes is free memory; release_rate, soft_limit
       and craton_release() release it */
    uint64_t heap_backed_bytes;
    /* address space made usable for Craton's tables; memory follows on first touch */
    uint64_t metadata_bytes;
    uint64_t threads_seen; /* threads that have had their own cache, since the start */
    uint64_t huge_bytes; /* in huge objects; not part of the heap's bytes */
    /* the control group's limit, or that of the option memory_limit; 0 for none */
    uint64_t memory_limit_bytes;
    uint64_t soft_limit_bytes; /* the soft limit in force; 0 for none */
    uint64_t hard_limit_bytes; /* the hard limit in force; 0 for none */
    /* times a request found more in use than the soft limit, since the start */
    uint64_t soft_limit_passed;
    /* requests that the hard limit refused, each with ENOMEM, since the start */
    uint64_t hard_limit_refused;
    /* times memory was released because the system was short of it, since the start */
    uint64_t pressure_releases;
    /* processors that the process may use, by affinity and quota, as last read; 0 before the
       heap has grown beyond 16 MiB */
    uint64_t usable_cpus;
    /* how threads without their own cache are served; 0 none; 1 processors; 2 compact-numbers */
    uint64_t cache_mode;
    uint64_t processor_caches; /* processors that have a cache */
    /* where memory_limit_bytes comes from; 0 not-read; 1 nowhere; 2 cgroup-v1; 3 cgroup-v2; 4
       option */
    uint64_t memory_limit_source;
    uint64_t granted_bytes; /* address space of the heap */
    /* spans of many small objects, on the filler's dense hugepages */
    uint64_t filler_dense_used_bytes;
    uint64_t filler_dense_free_bytes; /* free memory on the filler's dense hugepages */
    /* other spans shorter than a hugepage, and long spans' tails, on the filler's other
       hugepages */
    uint64_t filler_sparse_used_bytes;
    uint64_t filler_sparse_free_bytes; /* free memory on the filler's other hugepages */
    /* donated slack: free pages behind long spans' tails, also those without memory */
    uint64_t filler_slack_bytes;
    /* free memory of whole hugepages, which the hugepage cache keeps for the next spans */
    uint64_t huge_cache_bytes;
    /* that the hugepage cache may keep now, by recent demand; more goes back at once */
    uint64_t huge_cache_limit_bytes;
    uint64_t region_used_bytes; /* long spans in regions, packed across hugepages */
    uint64_t region_free_bytes; /* free memory of regions */
    /* long spans' whole hugepages. With the used bytes of filler and regions this is
       heap_in_use_bytes; with the free ones and huge_cache_bytes it is heap_backed_bytes */
    uint64_t large_span_bytes;
    /* hugepages that the system backs whole, as far as Craton knows: it asks for them, and looks
       later whether they came */
    uint64_t whole_hugepages;
    /* hugepage coverage: the memory on whole_hugepages as a part of heap_backed_bytes */
    uint64_t coverage_percent;
    /* hugepages of which some free pages were released one by one (subrelease) */
    uint64_t broken_hugepages;
    /* broken hugepages that are advised against hugepages, so that the system does not refill
       them */
    uint64_t guarded_hugepages;
    /* hugepages with spans that are left on small pages until the program is seen to use such
       spans densely */
    uint64_t small_hugepages;
    /* bytes of the heap that went back to the system, for any reason, since the start */
    uint64_t released_bytes;
    /* of these, by the background work, in a thread or in a request, since the start */
    uint64_t released_background_bytes;
    /* of these, for the soft limit, or since the system was short of memory, since the start */
    uint64_t released_limit_bytes;
    uint64_t collapses; /* hugepages that were on small pages and became huge, since the start */
    /* collapses that failed since the system had no free hugepage, since the start */
    uint64_t collapses_no_memory;
    /* collapses that failed since the system was using a page, since the start */
    uint64_t collapses_busy;
    uint64_t collapses_failed; /* collapses that failed for another reason, since the start */
    /* slabs without an object, kept in front of the page heap, to which they are in use */
    uint64_t complete_slab_bytes;
    /* short spans that slabs freed, kept in front of the page heap likewise */
    uint64_t front_span_bytes;
    /* freed objects above 128 KiB, kept in front of the page heap likewise */
    uint64_t front_large_bytes;
    /* freed huge objects' mappings, kept for the next huge object; not part of the heap's bytes */
    uint64_t kept_mapping_bytes;
    /* of the heap that have memory, by the system's page tables; 0 where it does not say, as
       before Linux 6.7. Read for text, XML and JSON only, since that takes up to 5 ms for a
       gigabyte on small pages */
    uint64_t resident_bytes;
    /* of resident_bytes, those on hugepages: the coverage as the system sees it */
    uint64_t resident_huge_bytes;
/* end: process */
};

/* The statistics themselves, as they change. */
extern const struct craton_segment craton_segment;

/* The library's version, such as "0.1.0". */
const char *craton_version(void);

/* Copies the statistics, with the page heap's current numbers, up to `size` bytes. Returns the size
 * of the library's struct, which is larger than `size` if the library is newer than this header.
 * Fields that an older library lacks stay unchanged. */
size_t craton_stats_sized(struct craton_segment *into, size_t size);

/* The same for the struct of this header. (The library's function of this name serves programs that
 * were compiled with the first header, and fills only that header's fields.) */
static inline void craton_stats_here(struct craton_segment *into) {
    craton_stats_sized(into, sizeof *into);
}
#define craton_stats craton_stats_here

/* Writes all statistics (classes, heaps, object caches and options included) as one JSON document
 * to `buffer` of `size` bytes. As snprintf, it truncates, ends with a 0, and returns the whole
 * length without the 0. `buffer` may be NULL if `size` is 0. The numbers can grow between two
 * calls: allow for that when you size a buffer. */
size_t craton_stats_json(char *buffer, size_t size);

/* begin: options, by cargo xtask tidy --fix */
/* Options, which docs/options.md explains: audit_log=N, background=0|inline|1,
   caches=auto|thread|cpu, debug=none|audit|redzone|poison|verify|guard|unmap|leak|mismatch|all,
   debug_file=PATH, guard_sample=auto|N, hard_limit=none|auto|BYTES|PERCENT%, hardened=0|1,
   memory_limit=cgroup|auto|none|BYTES, name_mappings=0|1, page_heap=temeraire|frames,
   pressure=PERCENT, profile=auto|off|BYTES, profile_every=off|N, profile_file=PATH,
   profile_growth=off|BYTES, quarantine=BYTES, release_rate=auto|BYTES,
   soft_limit=none|auto|BYTES|PERCENT%, stats=0|1, stats_dir=PATH, stats_file=PATH,
   thp=auto|always|never, thread_cache=BYTES, trace=PATH, trace_events=N. */
/* end: options */

/* Sets an option. page_heap can change only before the first request of the process. A limit below
 * the bytes in use takes effect at once, with one line on standard error; so does a hard limit
 * below the soft one. Returns 0, or -1 with errno EINVAL and no change for an unknown key, a bad
 * value, a limit of less than 1 MiB, or a soft limit above the hard one. */
int craton_option_set(const char *key, const char *value);

/* Writes an option's value, in craton_option_set's form, to `buffer` as snprintf does. Returns its
 * length, or -1 with errno EINVAL for an unknown key. */
ptrdiff_t craton_option_get(const char *key, char *buffer, size_t size);

/* Key of option number `i`, from 0, in alphabetical order; NULL after the last. */
const char *craton_option_name(size_t i);

/* 1 if this copy of Craton allocated `pointer`, now or earlier: only its free() accepts it. 0 for
 * pointers of other allocators and for NULL. */
int craton_owns(const void *pointer);

/* Releases all free memory to the system, also between objects. Returns the bytes released. */
size_t craton_release(void);

/* Sets the function that runs when use passes the soft limit and releasing free memory did not
 * help. It receives `arg`, the limit and the bytes in use. NULL, the initial value, for none.
 * The call comes from within a request, in the thread that made it. The C library may hold one of
 * its locks at that time (in fopen or dlopen), so free memory or set a flag, and return. The
 * function may allocate and free. It must return. It runs in one thread at a time and never within
 * itself: about once a second at most while use stays above the limit, and whenever use has grown
 * by 1/64 of it. */
void craton_set_limit_callback(void (*callback)(void *arg, size_t limit_bytes, size_t used_bytes),
                               void *arg);

/* Does one second's work of the library's own thread: releases memory that is due, keeps the heap
 * on hugepages, and checks the limits. Call it about once a second in programs that set
 * background=0, from a thread with 16 KiB of free stack. Returns 1 if it did anything, else 0:
 * after ten seconds of 0, one call every ten seconds is enough. */
int craton_background_actions(void);

/* Checks every buffer of the debugging kit (option debug) now: for writes next to live buffers, and
 * into freed ones. Reports the first bad buffer on standard error and aborts; otherwise returns the
 * number of buffers. */
size_t craton_debug_check(void);

/* Writes the heap profile into a file, for `craton profile FILE`. %p in `path` stands for the
 * process id, %n for the file's number. The file appears whole, by a rename; on failure an earlier
 * one stays. Under debug=audit it has every live buffer. Returns 0, or -1 with errno: that of the
 * file, EINVAL for a path that is empty or longer than 511 bytes, EDEADLK in a signal handler that
 * interrupted malloc or free. */
int craton_profile_write(const char *path);

/* Sizes, in bytes. */

/* The size that an object of `size` bytes is sure to have; at least `size`. malloc_usable_size can
 * report up to twice as much where a small heap has no object that fits better. 0 for a size too
 * large for any object. The second function takes an alignment, a power of two; 0 for another. */
size_t craton_good_size(size_t size);
size_t craton_good_size_aligned(size_t size, size_t align);

/* An object and its size; `ptr` NULL and `size` 0 with errno ENOMEM when there is no memory. */
struct craton_sized {
    void *ptr;
    size_t size;
};

/* Allocates at least `size` bytes and returns the actual size, all of which may be used. Free it as
 * any object; free_sized accepts every size between the two. EINVAL for an `align` that is not a
 * power of two. */
struct craton_sized craton_alloc_at_least(size_t size);
struct craton_sized craton_aligned_alloc_at_least(size_t align, size_t size);

/* Batches: faster than one call for each object. */

/* Allocates `count` objects of `size` bytes into `out`. Returns their number: fewer than `count`
 * only with errno ENOMEM, and then without writing the remaining entries. Each object may be freed
 * separately. */
size_t craton_alloc_batch(size_t size, size_t count, void **out);

/* Frees `count` objects of any sizes, however allocated. Skips NULLs. */
void craton_free_batch(void *const *pointers, size_t count);

/* Hints: how the program will use an object. One of them, or 0. The objects of a kind have slabs
 * and hugepages (2 MiB) to themselves. An object with a hint costs a lock. In the statistics, the
 * kinds are heaps with the names "cold", "hot", "dense" and "short-lived". A kind in use holds at
 * least 2 MiB of address space. */
enum craton_hint {
    CRATON_COLD = 1,       /* rarely used: on small pages, which the system reclaims one by one */
    CRATON_HOT = 2,        /* in constant use: on hugepages, in a small heap too: few TLB entries */
    CRATON_DENSE = 4,      /* one of many long-lived objects: kept off the hugepages of others */
    CRATON_SHORT_LIVED = 8 /* freed soon, with its like: their hugepages become free whole */
};

/* `size` bytes at a multiple of `align`, a power of two (1 for none; up to 2 MiB with a hint). NULL
 * with errno EINVAL for a bad alignment or hint, ENOMEM without memory. Free it as any object.
 * realloc keeps the hint. */
void *craton_alloc_hinted(size_t size, size_t align, unsigned hint);

/* Heaps that are destroyed whole. Any thread may use any heap: each has a lock. Objects are aligned
 * to 16; free, realloc (which stays in the heap) and malloc_usable_size accept them too.
 *
 * A destroyed heap, a pointer that is no heap, or an object of another heap ends the process with a
 * line that names the call and the address. At most 65536 heaps can exist at a time. */
typedef struct craton_heap craton_heap;

enum craton_heap_flag {
    CRATON_HEAP_APART = 1, /* on separate hugepages; objects above 256 KiB get whole ones */
    CRATON_HEAP_HUGE = 2,  /* as APART, backed by hugepages where the system can */
    CRATON_HEAP_SMALL = 3  /* as APART, backed by small pages */
};

struct craton_heap_options {
    size_t size;      /* of this struct: sizeof(struct craton_heap_options) */
    const char *name; /* copied; at most 31 printable ASCII bytes without " and \; NULL for none */
    size_t limit;     /* of slabs and objects above 256 KiB; rounded up to 8 KiB; 0: none */
    unsigned flags;   /* 0 or one of enum craton_heap_flag */
};

struct craton_heap_stats {
    uint64_t version;      /* of this layout: 1 */
/* begin: heap, by cargo xtask tidy --fix */
    uint64_t id; /* number among living heaps */
    uint64_t objects; /* objects that are out */
    uint64_t object_bytes; /* of those, as malloc_usable_size counts */
    uint64_t used_bytes; /* of its slabs and of objects above 256 KiB: what the limit bounds */
    uint64_t held_bytes; /* taken from the process's heap */
    uint64_t limit_bytes; /* the limit; 0 for none */
    uint64_t refused; /* requests that got nothing, since the start */
/* end: heap */
    char name[32];
};

/* Makes a heap; `options` may be NULL. NULL with errno EINVAL for bad options, ENOMEM without
 * memory or with too many heaps. */
craton_heap *craton_heap_create(const struct craton_heap_options *options);

/* Frees all objects of a heap at once: a step for each 256 KiB to 2 MiB, and for each object above
 * 256 KiB. No other thread may be using the heap. NULL has no effect. */
void craton_heap_destroy(craton_heap *heap);

/* As malloc, aligned_alloc, calloc, realloc, free and malloc_usable_size. NULL with errno ENOMEM
 * when memory is short or at the heap's limit; existing objects are unchanged. Alignments are
 * powers of two (else EINVAL) of up to 2 MiB (else ENOMEM). craton_heap_realloc to size 0 returns
 * the smallest object, and frees nothing. */
void *craton_heap_alloc(craton_heap *heap, size_t size);
void *craton_heap_aligned_alloc(craton_heap *heap, size_t align, size_t size);
void *craton_heap_calloc(craton_heap *heap, size_t count, size_t size);
void *craton_heap_realloc(craton_heap *heap, void *pointer, size_t size);
void craton_heap_free(craton_heap *heap, void *pointer);
size_t craton_heap_usable_size(craton_heap *heap, void *pointer);

/* Writes a heap's counts; `size` is the size of the program's struct. Fields that the library does
 * not know become 0. Returns 0, or -1 with errno EINVAL for a size below the struct above or above
 * 4096. */
int craton_heap_stats(craton_heap *heap, struct craton_heap_stats *into, size_t size);

/* Object caches: objects of one kind that stay constructed while free, so that one construction
 * serves many uses. Any thread may use any cache; free objects lie in per-CPU arrays, which need no
 * lock. Only craton_cache_free frees an object of a cache.
 *
 * A destroyed cache, a pointer that is no cache, an object of another cache or of malloc, a pointer
 * into the middle of an object, or a double free ends the process with a line that names the call,
 * the address and the caches. At most 4096 caches can exist at a time. */
typedef struct craton_cache craton_cache;

enum craton_cache_flag {
    CRATON_CACHE_NO_ARRAYS = 1, /* requests lock the cache; objects go to slabs at once */
    CRATON_CACHE_NO_COLOURS = 2 /* the objects of all slabs begin at the same offset */
};

struct craton_cache_options {
    size_t size;      /* of this struct: sizeof(struct craton_cache_options) */
    /* Shown in statistics and reports; also a target of the option debug. Copied; NULL for none. At
     * most 31 bytes of UTF-8, without control characters, invisible characters, characters that
     * change the direction of text, or any of " \ : + , =. Not "large", "malloc", or a number such
     * as 64 or 64K. */
    const char *name;
    size_t object_size; /* bytes of an object, 1 to 1 MiB */
    size_t align;       /* a power of two up to 1 MiB; 0 for 8 */

    /* Makes an object; NULL: objects have arbitrary contents. A result other than 0 means that it
     * failed and left nothing behind: the request then fails with ECANCELED. Called without a lock,
     * in the thread that asks for the object. Like the functions below, it must return: it throws
     * nothing (craton.hpp has caches whose constructors may), and does not leave by longjmp or
     * pthread_exit. */
    int (*constructor)(void *object, void *argument);
    /* Destroys an object before its memory is freed; needs a constructor. Called without a lock, in
     * a call on this cache, in craton_release, malloc_trim or craton_background_actions; never in
     * the heap's own thread. */
    void (*destructor)(void *object, void *argument);
    /* Memory is short, or the cache is at its limit: the program may free objects. Called without a
     * lock, in a call on this cache. */
    void (*reclaim)(void *argument);
    void *argument; /* the argument of these functions */

    size_t limit_objects; /* objects at a time, constructed free ones included; 0: no limit */
    size_t limit_bytes;   /* of slabs and magazines; rounded up to 8 KiB; 0: no limit */
    /* Free objects that stay unused for this time are destroyed; 0 for 15000; UINT_MAX for never.
     * The library's own thread checks once a second. It runs in programs that have threads and a
     * heap of 16 MiB, or 16 MiB of free memory. Elsewhere calls that pass the thread caches check,
     * and craton_background_actions. */
    unsigned working_set_ms;
    unsigned flags;       /* 0, or of enum craton_cache_flag */
};

struct craton_cache_stats {
    uint64_t version;              /* of this layout: 1 */
/* begin: cache, by cargo xtask tidy --fix */
    uint64_t id; /* number among living caches */
    uint64_t object_bytes; /* of an object, as asked for */
    uint64_t buffer_bytes; /* from one object to the next */
    uint64_t in_use; /* objects that the program has */
    uint64_t total; /* objects that the slabs have room for */
    uint64_t memory_bytes; /* of slabs and magazines: what the limit of bytes bounds */
    uint64_t allocations; /* objects handed out, since the start */
    /* of these, those that lay in the processor's array, since the start */
    uint64_t magazine_hits;
    /* requests that got nothing, also because the constructor failed, since the start */
    uint64_t failures;
    uint64_t constructor_failures; /* constructors that failed, since the start */
    uint64_t constructed; /* objects constructed, since the start */
    uint64_t destroyed; /* objects destroyed, since the start */
    uint64_t slabs; /* slabs */
    uint64_t partial; /* slabs of which some objects are out, in arrays or in magazines */
    uint64_t complete; /* slabs of which no object is */
    uint64_t full; /* slabs of which all objects are */
    uint64_t in_arrays; /* free objects in processors' arrays */
    uint64_t in_depot; /* free objects in magazines */
    /* objects that an array and the depot exchange at a time, at most; an array holds twice as
       many. Grows where calls wait for each other, and where arrays are often empty or full */
    uint64_t rounds;
    uint64_t contended; /* calls that had to wait for the cache's lock, since the start */
    uint64_t reserved; /* objects that craton_cache_prefill has promised */
    uint64_t limit_objects; /* objects that there may be, free ones included; 0 for no limit */
    uint64_t limit_bytes; /* that slabs and magazines may take; 0 for no limit */
/* end: cache */
    char name[32];
};

/* Makes a cache. NULL with errno EINVAL for a bad size, alignment, name or flag, and for a
 * destructor without a constructor; ENOMEM without memory or with too many caches. */
craton_cache *craton_cache_create(const struct craton_cache_options *options);

/* Destroys a cache and its free objects; no other thread may be using it. Returns 0, or -1 and
 * changes nothing: errno EBUSY while objects are in use, EDEADLK in a function of the cache itself.
 * NULL has no effect. */
int craton_cache_destroy(craton_cache *cache);

/* An object in its constructed state. NULL with errno ENOMEM without memory or at the limit,
 * ECANCELED when the constructor failed, EDEADLK in a constructor, destructor or reclaim function
 * of this cache. The second function waits up to `timeout_ms` milliseconds for an object to be
 * freed, then fails with ETIMEDOUT. */
void *craton_cache_alloc(craton_cache *cache);
void *craton_cache_alloc_wait(craton_cache *cache, uint64_t timeout_ms);

/* Frees an object, in its constructed state. NULL has no effect. */
void craton_cache_free(craton_cache *cache, void *object);

/* Reserves `objects` objects: up to that number can be in use without a request for memory.
 * Constructs the missing ones now. 0 drops the reservation. Returns 0, or -1 with errno as
 * craton_cache_alloc; objects made stay, and the previous reservation holds. */
int craton_cache_prefill(craton_cache *cache, size_t objects);

/* Destroys free objects and frees their memory to the heap, as far as whole slabs are free and not
 * reserved. Returns the bytes freed; 0 with errno EDEADLK in a function of the cache itself. */
size_t craton_cache_reap(craton_cache *cache);

/* Writes a cache's counts; `size` is the size of the program's struct. Fields that the library does
 * not know become 0. Returns 0, or -1 with errno EINVAL for a size below the struct above or above
 * 4096. */
int craton_cache_stats(craton_cache *cache, struct craton_cache_stats *into, size_t size);

#ifdef __cplusplus
}
#endif

#endif

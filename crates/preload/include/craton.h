/* Craton: a memory allocator. What a program can ask of it beyond malloc and free.
 * All functions may be called from any thread. None throws. */
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

/* Copies the statistics, with the page heap's numbers as they are now: as many as `size` bytes hold. Returns the bytes
 * that the library has: more than `size` if it is newer than this header. Numbers that an older one lacks stay as they
 * are. */
size_t craton_stats_sized(struct craton_segment *into, size_t size);

/* The same for the struct of this header. (The library's function of this name serves programs that were compiled with
 * the first header, and fills no more than that one had.) */
static inline void craton_stats_here(struct craton_segment *into) {
    craton_stats_sized(into, sizeof *into);
}
#define craton_stats craton_stats_here

/* Writes all statistics as one document of JSON, classes, heaps, object caches and options included, to `buffer` of `size` bytes, as snprintf does: cut
 * to what fits and ended by a 0; returns the document's whole length without the 0. `buffer` may be NULL if `size` is 0.
 * The numbers can grow between two calls: for a second one give some room more. */
size_t craton_stats_json(char *buffer, size_t size);

/* begin: options, by cargo xtask tidy --fix */
/* Options, which docs/options.md explains: audit_log=N, background=0|inline|1,
   caches=auto|thread|cpu, debug=none|audit|redzone|poison|verify|guard|unmap|leak|mismatch|all,
   guard_sample=auto|N, hard_limit=none|auto|BYTES|PERCENT%, hardened=0|1,
   memory_limit=cgroup|auto|none|BYTES, page_heap=temeraire|frames, pressure=PERCENT,
   quarantine=BYTES, release_rate=auto|BYTES, soft_limit=none|auto|BYTES|PERCENT%, stats=0|1,
   stats_file=PATH, thp=auto|always|never, thread_cache=BYTES, trace=PATH, trace_events=N. */
/* end: options */

/* Sets an option. page_heap can be set only before the first request of the process, else to what it is. A limit below what
 * is in use counts at once, and one line on standard error says so; likewise a hard limit below the soft one.
 * Returns 0, or -1 with errno EINVAL when there is no such key or value, when a limit is less than 1 MiB, or when a soft limit
 * is more than the hard one; nothing has changed then. */
int craton_option_set(const char *key, const char *value);

/* What an option is set to, as craton_option_set takes it: written to `buffer` as snprintf does. Returns its length, or -1 with
 * errno EINVAL when there is no such key. */
ptrdiff_t craton_option_get(const char *key, char *buffer, size_t size);

/* Key of the option number `i`, from 0 on, by the alphabet; NULL behind the last. */
const char *craton_option_name(size_t i);

/* 1 if this copy of Craton has allocated `pointer`, or had once: only its free() takes it. 0 for
 * pointers of other allocators and for NULL. */
int craton_owns(const void *pointer);

/* Gives all free memory back to the system, also between objects, and returns how many bytes that was. */
size_t craton_release(void);

/* Sets what is called when the soft limit is passed and giving free memory back did not help: with `arg`, the limit and the
 * bytes in use. NULL for nothing, as at the start.
 * The call comes from within a request for memory, in the thread that made it; that can be one that the C library made while
 * it held a lock of its own (as in fopen or dlopen), so it is best to free memory, or to set a flag and return. It may
 * allocate and free. It must return. It is called in one thread at a time, not from within itself, about once a second at
 * most while the program stays above the limit, and whenever it has grown by a 64th of it. */
void craton_set_limit_callback(void (*callback)(void *arg, size_t limit_bytes, size_t used_bytes), void *arg);

/* Does what the library's own thread does in a second: gives back memory that is due, keeps the heap on hugepages, and looks
 * at the limits. For programs that set background=0 and have a thread for such work, with 16 KiB of stack to spare; to be called
 * about each second. Returns
 * 1 if anything was done, else 0: after ten seconds of that, each ten seconds are enough. */
int craton_background_actions(void);

/* Looks at every buffer of the debugging kit (option debug) now: whether anybody has written beside those that are out, or into those that are
 * free. Reports the first that is wrong on standard error, and ends the process; else returns how many buffers there are. */
size_t craton_debug_check(void);

/* Sizes, in bytes. */

/* The least that an object of `size` bytes has, in bytes; never less than `size`. malloc_usable_size
 * can say up to twice as much, where a small heap has no object that fits better.
 * 0 for a size that no object can have. The second takes an alignment, a power of two; 0 if it is not one. */
size_t craton_good_size(size_t size);
size_t craton_good_size_aligned(size_t size, size_t align);

/* An object and its size; `ptr` NULL and `size` 0 with errno ENOMEM when there is no memory. */
struct craton_sized {
    void *ptr;
    size_t size;
};

/* Allocates at least `size` bytes, and says how many there are, all of which may be used. To be freed as any object; free_sized takes
 * every size from the one that was asked for to the one that was told. An `align` that is not a power of two is EINVAL. */
struct craton_sized craton_alloc_at_least(size_t size);
struct craton_sized craton_aligned_alloc_at_least(size_t align, size_t size);

/* Batches: quicker than as many calls. */

/* Allocates `count` objects of `size` bytes and writes them to `out`. Returns how many there are: fewer than `count` only with errno ENOMEM;
 * the entries behind are not written. Each may be freed by itself. */
size_t craton_alloc_batch(size_t size, size_t count, void **out);

/* Frees `count` objects of any sizes, from wherever; NULLs among them are skipped. */
void craton_free_batch(void *const *pointers, size_t count);

/* Hints: how an object will be used. One of them, or 0. Each kind has slabs and hugepages (2 MiB) that no other objects share. An
 * object with a hint costs a lock, and kinds are heaps of their own in the statistics, by the names "cold", "hot", "dense"
 * and "short-lived"; a kind that was used holds 2 MiB of address space at least. */
enum craton_hint {
    CRATON_COLD = 1,       /* hardly used: on small pages, which the system takes one by one when memory is short */
    CRATON_HOT = 2,        /* in constant use: on hugepages, in a small heap too, so that few entries of the TLB reach them */
    CRATON_DENSE = 4,      /* one of many that stay: they keep no hugepage alive of what comes and goes */
    CRATON_SHORT_LIVED = 8 /* gone soon, together with its like: their hugepages come free whole */
};

/* `size` bytes at a multiple of `align`, a power of two (1 for none; up to 2 MiB with a hint). NULL with errno EINVAL for another
 * alignment or hint, ENOMEM without memory. To be freed as any object. What realloc makes of it stays among its like. */
void *craton_alloc_hinted(size_t size, size_t align, unsigned hint);

/* Heaps that are destroyed whole. Any thread may use any heap: each has a lock. Objects are aligned to 16, and may also be given to
 * free, realloc (which stays in the heap) and malloc_usable_size.
 *
 * A heap that was destroyed, what is no heap, and an object of another heap end the process with a line that names the call and the address.
 * There may be 65536 heaps at a time. */
typedef struct craton_heap craton_heap;

enum craton_heap_flag {
    CRATON_HEAP_APART = 1, /* on hugepages of its own; objects above 256 KiB take whole ones */
    CRATON_HEAP_HUGE = 2,  /* likewise, backed by hugepages where the system can */
    CRATON_HEAP_SMALL = 3  /* likewise, backed by small pages */
};

struct craton_heap_options {
    size_t size;      /* of this struct: sizeof(struct craton_heap_options) */
    const char *name; /* at most 31 printable ASCII bytes without " and \, shown in statistics; NULL for none; is copied */
    size_t limit;     /* bytes that slabs (of 8 KiB or more) and objects above 256 KiB may take, rounded up to 8 KiB; 0 for no limit */
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

/* Makes a heap; `options` may be NULL. NULL with errno EINVAL for bad options, ENOMEM without memory or with too many heaps. */
craton_heap *craton_heap_create(const struct craton_heap_options *options);

/* Gives all objects of a heap back at once, whether freed or not, in a step for each 256 KiB to 2 MiB and each object above 256 KiB.
 * No other thread may be using the heap. NULL is nothing to destroy. */
void craton_heap_destroy(craton_heap *heap);

/* As malloc, aligned_alloc, calloc, realloc, free and malloc_usable_size. NULL with errno ENOMEM when there is no memory or the limit
 * is reached; what was there is as before. Alignments are powers of two (else EINVAL) of up to 2 MiB (else ENOMEM).
 * craton_heap_realloc to size 0 gives the smallest object, and frees nothing. */
void *craton_heap_alloc(craton_heap *heap, size_t size);
void *craton_heap_aligned_alloc(craton_heap *heap, size_t align, size_t size);
void *craton_heap_calloc(craton_heap *heap, size_t count, size_t size);
void *craton_heap_realloc(craton_heap *heap, void *pointer, size_t size);
void craton_heap_free(craton_heap *heap, void *pointer);
size_t craton_heap_usable_size(craton_heap *heap, void *pointer);

/* Writes a heap's counts; `size` is that of the program's struct. One that is longer than the library's, as of a newer version, has zeros there. 0, or -1
 * with errno EINVAL for a size below that of the struct above or above 4096. */
int craton_heap_stats(craton_heap *heap, struct craton_heap_stats *into, size_t size);

/* Object caches: objects of one kind that stay constructed while they are free, so that their constructor runs once for many uses. Any thread
 * may use any cache; free objects lie in arrays of the processors, which need no lock. An object of a cache goes back by craton_cache_free alone.
 *
 * A cache that was destroyed, what is no cache, an object of another cache or of malloc, the middle of an object and one that is free
 * already end the process with a line that names the call, the address and the caches. There may be 4096 caches at a time. */
typedef struct craton_cache craton_cache;

enum craton_cache_flag {
    CRATON_CACHE_NO_ARRAYS = 1, /* each request takes the cache's lock: objects that are free are on their slabs, to be given back at once */
    CRATON_CACHE_NO_COLOURS = 2 /* the objects of all slabs begin at the same place */
};

struct craton_cache_options {
    size_t size;        /* of this struct: sizeof(struct craton_cache_options) */
    /* Shown in statistics and reports, and a target of the option debug: at most 31 bytes of UTF-8 without control characters, others that are not
     * seen or turn the direction of text, and " \ : + , =; no number such as 64 or 64K, "large" or "malloc". NULL for none; is copied. */
    const char *name;
    size_t object_size; /* bytes of an object, 1 to 1 MiB */
    size_t align;       /* a power of two up to 1 MiB; 0 for 8 */

    /* Makes an object; NULL: objects are memory that contains anything. Anything but 0 says that it failed and has left nothing behind: then the
     * request fails with ECANCELED. Called without a lock, in the thread that asks for the object. Like the functions below it returns: it
     * throws nothing (craton.hpp has caches whose constructors may), and does not leave by longjmp or pthread_exit. */
    int (*constructor)(void *object, void *argument);
    /* Ends what the constructor made, before the object's memory goes back; not without a constructor. Called without a lock, in a call on this cache, in
     * craton_release, malloc_trim or craton_background_actions; never in the heap's own thread. */
    void (*destructor)(void *object, void *argument);
    /* Memory is short or the limit is reached: the program may give objects back. Called without a lock, in a call on this cache. */
    void (*reclaim)(void *argument);
    void *argument; /* what these are given */

    size_t limit_objects;    /* objects that there may be at a time, constructed ones that are free included; 0 for no limit */
    size_t limit_bytes;      /* bytes that slabs (of 8 KiB or more) and magazines may take, rounded up to 8 KiB; 0 for no limit */
    unsigned working_set_ms; /* what was not needed for so long goes back; 0 for 15000; UINT_MAX for never. The library's own thread looks each
                              * second: a program has it when it has threads and a heap of 16 MiB, or 16 MiB lie free. Without it that
                              * is done in calls past the caches of threads, and in craton_background_actions. */
    unsigned flags;          /* 0, or of enum craton_cache_flag */
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

/* Makes a cache. NULL with errno EINVAL for a bad size, alignment, name or flag and for a destructor without a constructor, ENOMEM without memory or with too many caches. */
craton_cache *craton_cache_create(const struct craton_cache_options *options);

/* Destroys a cache and its free objects; no other thread may be using it. 0; -1 with errno EBUSY while objects are out, EDEADLK in a function of the
 * cache itself: nothing has changed then. NULL is nothing to destroy. */
int craton_cache_destroy(craton_cache *cache);

/* An object in its constructed state. NULL with errno ENOMEM without memory or at the limit, ECANCELED when the constructor failed, EDEADLK in a
 * constructor, destructor or reclaim function of this cache. The second waits for an object that comes back for so many milliseconds at most before it gives
 * up with ETIMEDOUT. */
void *craton_cache_alloc(craton_cache *cache);
void *craton_cache_alloc_wait(craton_cache *cache, uint64_t timeout_ms);

/* Gives an object back, in its constructed state. NULL is nothing to free. */
void craton_cache_free(craton_cache *cache, void *object);

/* Promises that `objects` objects may be out at a time without memory being asked for: makes and constructs now what is missing. 0 takes the
 * promise back. 0, or -1 with errno as craton_cache_alloc; what was made stays, and the old promise holds. */
int craton_cache_prefill(craton_cache *cache, size_t objects);

/* Destroys free objects and gives their memory back to the heap, as far as whole slabs are free and no promise holds them. Returns how many
 * bytes; 0 with errno EDEADLK in a function of the cache itself. */
size_t craton_cache_reap(craton_cache *cache);

/* Writes a cache's counts; `size` is that of the program's struct. One that is longer than the library's, as of a newer version, has zeros there. 0, or -1
 * with errno EINVAL for a size below that of the struct above or above 4096. */
int craton_cache_stats(craton_cache *cache, struct craton_cache_stats *into, size_t size);

#ifdef __cplusplus
}
#endif

#endif

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
    uint64_t pid;
    uint64_t refills;           /* batches of objects handed from slabs to threads' caches, since the start */
    uint64_t objects_out;       /* objects in those batches */
    uint64_t large_allocs;      /* objects above 256 KiB, since the start */
    uint64_t huge_allocs;       /* objects with a mapping of their own, since the start */
    uint64_t heap_in_use_bytes; /* spans of the heap, now */
    uint64_t heap_backed_bytes; /* hugepages of the heap that may have memory, now */
    uint64_t metadata_bytes;    /* made usable for metadata (address space; memory follows on first touch) */
    uint64_t threads_seen;      /* threads that have had a cache */
    uint64_t huge_bytes;        /* huge objects, now; not part of the heap's bytes */
    uint64_t memory_limit_bytes; /* the control group's limit, or what the option memory_limit says, now; 0 for none */
    uint64_t soft_limit_bytes;  /* in force now; 0 for none */
    uint64_t hard_limit_bytes;  /* likewise */
    uint64_t soft_limit_passed; /* times a request found more in use than the soft limit */
    uint64_t hard_limit_refused; /* requests that the hard limit refused */
    uint64_t pressure_releases; /* times memory was given back because the system was short of it */
    uint64_t usable_cpus;       /* by affinity and quota, as last found; 0 before the heap has grown beyond 16 MiB */
    uint64_t cache_mode;        /* how threads without a cache of their own are served: 0 there are none, 1 by caches of
                                   processors, 2 by caches of the kernel's compact numbers (mm_cid) */
    uint64_t processor_caches;  /* processors that have a cache, now */
};

/* The statistics themselves, as they change. */
extern const struct craton_segment craton_segment;

/* The library's version, such as "0.1.0". */
const char *craton_version(void);

/* Copies the statistics. */
void craton_stats(struct craton_segment *into);

/* Sets an option (background, caches, hard_limit, memory_limit, pressure, release_rate, soft_limit, stats, stats_file, thp,
 * thread_cache, trace, trace_events; see the README). A limit below what is in use counts at once, and one line on standard
 * error says so.
 * Returns 0, or -1 with errno EINVAL when there is no such key or value. */
int craton_option_set(const char *key, const char *value);

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
 * 1 if anything was done, else 0: after some minutes of that, each ten seconds are enough. */
int craton_background_actions(void);

#ifdef __cplusplus
}
#endif

#endif

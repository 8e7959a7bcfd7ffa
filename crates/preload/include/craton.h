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

/* Sets an option (background, caches, release_rate, stats, stats_file, thp, thread_cache, trace, trace_events; see the README).
 * Returns 0, or -1 with errno EINVAL when there is no such key or value. */
int craton_option_set(const char *key, const char *value);

/* Gives all free memory back to the system, also between objects, and returns how many bytes that was. */
size_t craton_release(void);

#ifdef __cplusplus
}
#endif

#endif

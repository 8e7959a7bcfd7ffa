/* Page frames for kernels: which frames of a range are allocated, without locks (LLFree, USENIX
 * ATC 2023). Nothing here touches the frames; the state lies in a buffer of the caller's.
 *
 * A frame is 4 KiB by its number, from 0; order k is 2^k aligned frames, k up to 10. Any CPU may
 * call any function at any moment, except craton_frames_init; none sleeps, none takes a lock, none
 * uses floating point. A CPU's number is a hint: a stale one costs time, nothing else.
 *
 * A call may wait until another call has made a few writes. An interrupt handler that interrupted
 * that call would wait for ever: if handlers call too, turn interrupts off around each call.
 *
 * Results below 0 are -enum craton_frames_error; the state is then as before. `of` is a state of
 * craton_frames_init; no function checks that.
 *
 * kernel.c beside this folder is a whole program that uses them; docs/kernel.md says how to link it. */
#ifndef CRATON_FRAMES_H
#define CRATON_FRAMES_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stddef.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Lives in the buffer. */
struct craton_frames;

enum craton_frames_error {
  CRATON_FRAMES_NO_MEMORY = 1,     /* no free block of that order */
  CRATON_FRAMES_BAD_ORDER = 2,     /* above CRATON_FRAMES_MAX_ORDER */
  CRATON_FRAMES_OUT_OF_RANGE = 3,  /* not all of the frames lie in the range */
  CRATON_FRAMES_MISALIGNED = 4,    /* no multiple of the order's frames */
  CRATON_FRAMES_NOT_ALLOCATED = 5, /* freed twice, of another order, or never allocated */
  CRATON_FRAMES_IN_USE = 6,        /* not all of the frames are free */
  CRATON_FRAMES_OFFLINE = 7,       /* in a huge frame that was reclaimed */
  CRATON_FRAMES_NOT_OFFLINE = 8,   /* it was not reclaimed */
  CRATON_FRAMES_BAD_CPU = 9,       /* not below the number of CPUs */
  CRATON_FRAMES_BAD_BUFFER = 10,   /* missing, too short, or no multiple of 64 */
  CRATON_FRAMES_BAD_SIZE = 11,     /* no frames or CPUs, 2^36 frames or more, above 2^16 CPUs */
  CRATON_FRAMES_BROKEN = 12,       /* craton_frames_validate: the state contradicts itself */
};

enum { CRATON_FRAMES_MAX_ORDER = 10, CRATON_FRAMES_HUGE_ORDER = 9 };

/* Blocks of one kind share huge frames, so that the others stay whole. */
enum craton_frames_kind {
  CRATON_FRAMES_MOVABLE = 0,
  CRATON_FRAMES_UNMOVABLE = 1,
  CRATON_FRAMES_RECLAIMABLE = 2, /* freed when memory is short: the page cache */
};

enum craton_frames_begin {
  CRATON_FRAMES_FREE = 0,
  CRATON_FRAMES_ALLOCATED = 1, /* the caller frees what is usable, by craton_frames_unreserve */
};

struct craton_frames_stats {
  size_t frames;
  size_t free_frames;      /* exact when no call is under way */
  size_t free_huge_frames; /* wholly free ones, after craton_frames_drain */
  size_t offline_huge_frames;
};

/* Bytes of the buffer; 0 if the numbers are wrong (CRATON_FRAMES_BAD_SIZE). */
size_t craton_frames_size(size_t frames, size_t cpus);

/* Begins a state in `buffer`, at a multiple of 64, which is the state's until it is no longer used.
 * Returns 0 and sets *out, which points into the buffer. `begin` other than FREE is ALLOCATED. */
int craton_frames_init(void *buffer, size_t bytes, size_t frames, size_t cpus,
                       enum craton_frames_begin begin, struct craton_frames **out);

/* 2^order frames; returns the first. A `kind` that is unknown is UNMOVABLE. */
long craton_frames_get(const struct craton_frames *of, unsigned order, enum craton_frames_kind kind,
                       size_t cpu);

/* Frees a block, or an aligned part of one, on any CPU. Of two frees of a frame at once, one
 * succeeds. */
int craton_frames_put(const struct craton_frames *of, size_t frame, unsigned order, size_t cpu);

/* Allocates any range, if all of it is free; frees any range, if all of it is allocated. */
int craton_frames_reserve(const struct craton_frames *of, size_t frame, size_t frames);
int craton_frames_unreserve(const struct craton_frames *of, size_t frame, size_t frames);

/* Gives back what the CPU holds ahead: before it goes offline, or before a count. */
int craton_frames_drain(const struct craton_frames *of, size_t cpu);

/* Takes a wholly free huge frame, the first from about `near` on, and marks it offline: for a
 * hypervisor, or for memory that is unplugged. Returns its first frame. */
long craton_frames_reclaim(const struct craton_frames *of, size_t near);
/* The offline huge frame whose first frame is `frame` is free again. */
int craton_frames_online(const struct craton_frames *of, size_t frame);

/* 0: a get of this order was refused, and nothing was freed since; 1: a get may succeed. One load, for
 * watermarks. */
int craton_frames_may_have(const struct craton_frames *of, unsigned order);

void craton_frames_stats(const struct craton_frames *of, struct craton_frames_stats *out);

/* Walks the state: 0, or -CRATON_FRAMES_BROKEN. Meaningful when no call is under way. */
int craton_frames_validate(const struct craton_frames *of);

/* A sentence without an end of line, for a result below 0; "no error" for others. */
const char *craton_frames_error(long result);

/* The kernel's: called on a bug of the allocator's, with a text of `bytes` bytes, and does not return. */
void craton_frames_panic(const char *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif

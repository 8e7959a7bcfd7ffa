/* SPDX-License-Identifier: MIT OR GPL-2.0 */
/* The door between the page allocator and page frames; mm/craton.c says what serves what. */
#ifndef _MM_CRATON_H
#define _MM_CRATON_H

#include <linux/jump_label.h>
#include <linux/mmzone.h>

#ifdef CONFIG_CRATON_FRAMES

DECLARE_STATIC_KEY_FALSE(craton_frames_key);
extern struct zone *craton_zone;
extern unsigned int craton_first;

struct page *craton_get_page(struct zone *zone, unsigned int order, gfp_t gfp);
bool craton_put_page(unsigned long pfn, unsigned int order, bool count);
bool craton_has_free(unsigned int order);
void craton_drain_cpu(unsigned int cpu);
void craton_count_fallback(unsigned int order);

/* mm/page_alloc.c: moves the zone's free blocks from the buddy's lists to page frames. */
unsigned long craton_move_free_lists(struct zone *zone, unsigned long end);

/* mm/craton_board.c */
extern atomic_long_t craton_offline;
int craton_board_begin(unsigned long base_pfn, unsigned long count);
unsigned long craton_board_address(void);
unsigned long craton_board_taken(void);
struct craton_frames;
void craton_board_offer(const struct craton_frames *frames, unsigned long keep);
bool craton_board_take_back(const struct craton_frames *frames);

static inline bool craton_serves(struct zone *zone)
{
	return static_branch_unlikely(&craton_frames_key) && zone == craton_zone;
}

/* Whether page frames are asked before the per-CPU lists and the buddy allocator. */
static inline bool craton_is_first(unsigned int order)
{
	return craton_first >> order & 1;
}

/* Frees into page frames if the block is theirs. `count`: NR_FREE_PAGES and PGFREE grow here. */
static inline bool craton_put(struct zone *zone, unsigned long pfn, unsigned int order,
			      int migratetype, bool count)
{
	return craton_serves(zone) && migratetype_is_mergeable(migratetype) &&
	       craton_put_page(pfn, order, count);
}

#else

static inline bool craton_serves(struct zone *zone) { return false; }
static inline bool craton_is_first(unsigned int order) { return false; }
static inline bool craton_put(struct zone *zone, unsigned long pfn, unsigned int order,
			      int migratetype, bool count) { return false; }
static inline struct page *craton_get_page(struct zone *zone, unsigned int order,
					   gfp_t gfp) { return NULL; }
static inline bool craton_has_free(unsigned int order) { return false; }
static inline void craton_drain_cpu(unsigned int cpu) { }
static inline void craton_count_fallback(unsigned int order) { }

#endif
#endif

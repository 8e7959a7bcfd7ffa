// SPDX-License-Identifier: MIT OR GPL-2.0
/* Offers of free huge frames to the host: a byte of a shared page for each (apps/kernel/src/board.rs
 * has the protocol, HB1 and HB2).
 *
 * An offered huge frame is offline in page frames, and NR_FREE_PAGES counts it as free: a request that
 * finds no other block takes one back by one atomic change of its byte. The host never sends an
 * interrupt, and the guest leaves no instruction that traps. */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/processor.h>

#include "craton.h"
#include "craton_frames.h"

#define MAGIC 0x6472616f62747263ull /* "crtboard" */

enum { GUESTS, OFFERED, TAKING, TAKEN };

struct board {
	u64 magic, base, count;
	u8 states[PAGE_SIZE - 24];
};

static struct board *board;
static unsigned long cursor;
atomic_long_t craton_offline;

int __init craton_board_begin(unsigned long base_pfn, unsigned long count)
{
	BUILD_BUG_ON(sizeof(struct board) != PAGE_SIZE);
	board = (struct board *)get_zeroed_page(GFP_KERNEL);
	if (!board)
		return -ENOMEM;
	board->base = PFN_PHYS(base_pfn);
	board->count = min(count >> CRATON_FRAMES_HUGE_ORDER, sizeof(board->states));
	/* ORDERING: pairs with the host's read of the magic. */
	smp_store_release(&board->magic, MAGIC);
	return 0;
}

unsigned long craton_board_address(void)
{
	return __pa(board);
}

unsigned long craton_board_taken(void)
{
	unsigned long taken = 0, i;

	for (i = 0; i < board->count; i++)
		taken += READ_ONCE(board->states[i]) == TAKEN;
	return taken;
}

/* Offers free huge frames but for `keep` of them; interrupts are off. */
void craton_board_offer(const struct craton_frames *frames, unsigned long keep)
{
	struct craton_frames_stats stats;
	long frame, near = 0;

	craton_frames_stats(frames, &stats);
	while (stats.free_huge_frames-- > keep) {
		frame = craton_frames_reclaim(frames, near);
		if (frame < 0)
			return;
		near = frame;
		if (frame >> CRATON_FRAMES_HUGE_ORDER >= board->count) {
			craton_frames_online(frames, frame);
			return;
		}
		atomic_long_inc(&craton_offline);
		/* ORDERING: pairs with the host's acquire: the guest's last accesses come before. */
		smp_store_release(&board->states[frame >> CRATON_FRAMES_HUGE_ORDER], OFFERED);
	}
}

/* The host's or offered: now the guest's. False: it was already. */
static bool take_back(u8 *state)
{
	u8 found;

	for (;;) {
		found = READ_ONCE(*state);
		if (found == GUESTS)
			return false;
		/* The host is in a system call. */
		if (found == TAKING)
			cpu_relax();
		/* ORDERING: pairs with the host's release of `taken`: the memory is gone before. */
		else if (cmpxchg(state, found, GUESTS) == found)
			return true;
	}
}

/* One huge frame is free again; interrupts are off. */
bool craton_board_take_back(const struct craton_frames *frames)
{
	unsigned long from = READ_ONCE(cursor), i;

	for (i = 0; i < board->count; i++) {
		unsigned long at = (from + i) % board->count;

		if (!take_back(&board->states[at]))
			continue;
		WRITE_ONCE(cursor, at);
		atomic_long_dec(&craton_offline);
		craton_frames_online(frames, at << CRATON_FRAMES_HUGE_ORDER);
		return true;
	}
	return false;
}

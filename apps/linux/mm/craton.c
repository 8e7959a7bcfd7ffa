// SPDX-License-Identifier: MIT OR GPL-2.0
/* Page frames serve one zone's blocks (LLFree section 4.2).
 *
 * `craton=ZONE` on the command line selects the zone: orders 0 and pageblock_order ask page frames
 * first; the others ask the buddy allocator first, and page frames last. With `craton=ZONE,all` all
 * orders ask page frames first. The zone's range of frames begins as allocated. At the end of boot
 * the buddy allocator's free blocks move to page frames. From then on one rule holds:
 *
 *   A freed block goes to page frames if its page block has a mergeable type; all others go to the
 *   buddy allocator.
 *
 * So a frame is in use, free in page frames, or free in the buddy allocator, and page frames count
 * the third as allocated.
 *
 * Every call runs with interrupts off: a call may wait for another CPU's few writes, never for a call
 * that it interrupted. NR_FREE_PAGES counts the frames of both; /proc/craton shows what was served,
 * and checks the state on request. */
#define pr_fmt(fmt) "craton: " fmt

#include <linux/init.h>
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/stop_machine.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/vmstat.h>

#include "craton.h"
#include "craton_frames.h"

struct counts {
	unsigned long get[MAX_ORDER], put[MAX_ORDER], fallback[MAX_ORDER];
	unsigned long refused;
};

DEFINE_STATIC_KEY_FALSE(craton_frames_key);
struct zone *craton_zone __read_mostly;
unsigned int craton_first __read_mostly; /* a bit for each order */
static struct craton_frames *frames __read_mostly;
static unsigned long base __read_mostly, count __read_mostly;
static unsigned long moved;
static DEFINE_PER_CPU(struct counts, counts);
static char zone_name[16] __initdata;

/* Of what Linux calls unmovable, the pages of a block device's cache go when memory is short, and page
 * tables stay. The first are for a user, and so have __GFP_HARDWALL. */
static enum craton_frames_kind kind_of(gfp_t gfp)
{
	if (gfp & __GFP_MOVABLE)
		return CRATON_FRAMES_MOVABLE;
	return gfp & (__GFP_RECLAIMABLE | __GFP_HARDWALL) ? CRATON_FRAMES_RECLAIMABLE : CRATON_FRAMES_UNMOVABLE;
}

void craton_frames_panic(const char *text, size_t bytes)
{
	panic("craton: %.*s", (int)bytes, text);
}

/* No block, or the host has huge frames. */
static noinline long get_again(unsigned int order, gfp_t gfp)
{
	long frame = -CRATON_FRAMES_NO_MEMORY;

	while (frame < 0 && atomic_long_read(&craton_offline) > 0 && craton_board_take_back(frames))
		frame = craton_frames_get(frames, order, kind_of(gfp), smp_processor_id());
	return frame;
}

/* NULL: no free block of the order. */
struct page *craton_get_page(struct zone *zone, unsigned int order, gfp_t gfp)
{
	unsigned long flags;
	long frame;

	local_irq_save(flags);
	frame = craton_frames_get(frames, order, kind_of(gfp), smp_processor_id());
	if (unlikely(frame < 0))
		frame = get_again(order, gfp);
	if (likely(frame >= 0)) {
		__mod_zone_page_state(zone, NR_FREE_PAGES, -(1l << order));
		__this_cpu_inc(counts.get[order]);
	}
	local_irq_restore(flags);
	return unlikely(frame < 0) ? NULL : pfn_to_page(base + frame);
}

/* The buddy allocator is asked instead. */
void craton_count_fallback(unsigned int order)
{
	this_cpu_inc(counts.fallback[order]);
}

/* False: the block does not lie in the range. A block that is free already stays as it is, and the
 * kernel warns. */
bool craton_put_page(unsigned long pfn, unsigned int order, bool count_it)
{
	unsigned long flags;
	int result;

	if (pfn - base >= count)
		return false;
	local_irq_save(flags);
	result = craton_frames_put(frames, pfn - base, order, smp_processor_id());
	if (likely(result == 0)) {
		__this_cpu_inc(counts.put[order]);
		if (count_it) {
			__mod_zone_page_state(craton_zone, NR_FREE_PAGES, 1l << order);
			__count_vm_events(PGFREE, 1 << order);
		}
	} else {
		__this_cpu_inc(counts.refused);
		/* Of a block that is lost, the caller has counted frames as free. */
		if (!count_it)
			__mod_zone_page_state(craton_zone, NR_FREE_PAGES, -(1l << order));
	}
	local_irq_restore(flags);
	WARN(result < 0, "craton: page frame %#lx, order %u, cannot be freed: %s\n", pfn, order,
	     craton_frames_error(result));
	return true;
}

/* May there be a block? */
bool craton_has_free(unsigned int order)
{
	return craton_frames_may_have(frames, order) || atomic_long_read(&craton_offline) > 0;
}

void craton_drain_cpu(unsigned int cpu)
{
	unsigned long flags;

	local_irq_save(flags);
	craton_frames_drain(frames, cpu);
	local_irq_restore(flags);
}

/* The state's invariants, and NR_FREE_PAGES against the free blocks of both allocators. */
struct check {
	int result;
	long counted, buddy, ours;
};

static int check_stopped(void *data)
{
	struct check *check = data;
	struct craton_frames_stats stats;
	unsigned int order;

	check->result = craton_frames_validate(frames);
	craton_frames_stats(frames, &stats);
	check->ours = stats.free_frames + (stats.offline_huge_frames << CRATON_FRAMES_HUGE_ORDER);
	check->counted = zone_page_state_snapshot(craton_zone, NR_FREE_PAGES);
	for (order = 0; order < MAX_ORDER; order++)
		check->buddy += craton_zone->free_area[order].nr_free << order;
	return 0;
}

static int craton_check(void)
{
	struct check check = {};

	stop_machine(check_stopped, &check, NULL);
	if (check.result < 0)
		pr_err("check: %s\n", craton_frames_error(check.result));
	else if (check.counted != check.buddy + check.ours)
		pr_err("check: NR_FREE_PAGES is %ld, but the buddy allocator has %ld and page frames %ld free\n",
		       check.counted, check.buddy, check.ours);
	else
		return 0;
	return -EUCLEAN;
}

static int craton_show(struct seq_file *m, void *unused)
{
	struct craton_frames_stats stats;
	unsigned long refused = 0;
	unsigned int order, cpu;

	if (!craton_zone) {
		seq_puts(m, "zone none\n");
		return 0;
	}
	craton_frames_stats(frames, &stats);
	seq_printf(m, "zone %s\nframes %zu\nmoved at boot %lu\nfree frames %zu\nfree huge frames %zu\n",
		   craton_zone->name, stats.frames, moved, stats.free_frames,
		   stats.free_huge_frames);
	for (order = 0; order < MAX_ORDER; order++) {
		unsigned long get = 0, put = 0, fallback = 0;

		for_each_possible_cpu(cpu) {
			struct counts *of = per_cpu_ptr(&counts, cpu);

			get += of->get[order];
			put += of->put[order];
			fallback += of->fallback[order];
		}
		seq_printf(m, "order %u: get %lu put %lu fallback %lu\n", order, get, put, fallback);
	}
	for_each_possible_cpu(cpu)
		refused += per_cpu(counts.refused, cpu);
	seq_printf(m, "refused %lu\n", refused);
	seq_printf(m, "board %lu\noffline huge frames %zu\ntaken by the host %lu\n", craton_board_address(),
		   stats.offline_huge_frames, craton_board_taken());
	return 0;
}

static int craton_open(struct inode *inode, struct file *file)
{
	return single_open(file, craton_show, NULL);
}

#ifdef CONFIG_CRATON_FRAMES_PLANT
/* Frees a block twice, or frees one that stays in use: page frames and the page allocator must say so. */
static int plant(bool twice)
{
	struct page *page = alloc_page(GFP_KERNEL);

	if (!page)
		return -ENOMEM;
	if (page_zone(page) != craton_zone) {
		__free_page(page);
		return -ENXIO;
	}
	if (twice)
		__free_page(page);
	craton_put_page(page_to_pfn(page), 0, true);
	return 0;
}
#endif

/* Above what page reporting keeps: a watermark, and as many huge frames as it reports at once. */
static void craton_offer(void)
{
	unsigned long keep = DIV_ROUND_UP(low_wmark_pages(craton_zone), 1ul << CRATON_FRAMES_HUGE_ORDER) + 32;
	unsigned long flags;

	local_irq_save(flags);
	craton_board_offer(frames, keep);
	local_irq_restore(flags);
}

/* "drain": CPUs return the frames that they hold, of both allocators. With page frames also "check":
 * status EUCLEAN if the state contradicts itself; "offer": free huge frames to the host. */
static ssize_t craton_write(struct file *file, const char __user *from, size_t bytes, loff_t *at)
{
	char word[16] = {};
	int result = -EINVAL, cpu;

	if (bytes >= sizeof(word))
		return -EINVAL;
	if (copy_from_user(word, from, bytes))
		return -EFAULT;
	strim(word);
	if (!strcmp(word, "drain")) {
		drain_all_pages(NULL);
		if (craton_zone)
			for_each_possible_cpu(cpu)
				craton_drain_cpu(cpu);
		result = 0;
	} else if (!craton_zone) {
		result = -ENXIO;
	} else if (!strcmp(word, "check")) {
		result = craton_check();
	} else if (!strcmp(word, "offer")) {
		craton_offer();
		result = 0;
#ifdef CONFIG_CRATON_FRAMES_PLANT
	} else if (!strcmp(word, "plant twice")) {
		result = plant(true);
	} else if (!strcmp(word, "plant in-use")) {
		result = plant(false);
#endif
	}
	return result < 0 ? result : bytes;
}

static const struct proc_ops craton_ops = {
	.proc_open = craton_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
	.proc_write = craton_write,
};

/* Isolation finds no frame that page frames hold, and would search for ever. */
static int keep_online(struct notifier_block *self, unsigned long action, void *data)
{
	struct memory_notify *range = data;
	bool is_ours = action == MEM_GOING_OFFLINE && range->start_pfn < base + count &&
		       range->start_pfn + range->nr_pages > base;

	return is_ours ? notifier_from_errno(-EBUSY) : NOTIFY_DONE;
}

static struct notifier_block hotplug __maybe_unused = { .notifier_call = keep_online };

static int __init select_zone(char *name)
{
	char *orders;

	if (!name || strscpy(zone_name, name, sizeof(zone_name)) < 0)
		return -EINVAL;
	orders = strchr(zone_name, ',');
	if (orders)
		*orders++ = '\0';
	if (orders && strcmp(orders, "all"))
		pr_err("craton=%s: after the comma only `all` is known; page frames serve orders 0 and %u first\n", name,
		       pageblock_order);
	else if (orders)
		craton_first = ~0u;
	return 0;
}
early_param("craton", select_zone);

static struct zone *__init zone_of_name(void)
{
	struct pglist_data *pgdat = first_online_pgdat();
	struct zone *zone;

	for (zone = pgdat->node_zones; zone < pgdat->node_zones + MAX_NR_ZONES; zone++)
		if (populated_zone(zone) && !strcasecmp(zone->name, zone_name))
			return zone;
	pr_err("craton=%s names no zone with memory; the buddy allocator serves alone. Zones:\n", zone_name);
	for (zone = pgdat->node_zones; zone < pgdat->node_zones + MAX_NR_ZONES; zone++)
		if (populated_zone(zone))
			pr_err("  craton=%s\n", zone->name);
	return NULL;
}

static int __init craton_begin(void)
{
	struct zone *zone = zone_name[0] ? zone_of_name() : NULL;
	size_t bytes;
	void *buffer;
	int result;

	BUILD_BUG_ON(MAX_ORDER - 1 > CRATON_FRAMES_MAX_ORDER);
	proc_create("craton", 0600, NULL, &craton_ops);
	if (!zone)
		return 0;
	craton_first |= 1u | 1u << pageblock_order;
	base = ALIGN_DOWN(zone->zone_start_pfn, MAX_ORDER_NR_PAGES);
	count = zone_end_pfn(zone) - base;
	bytes = craton_frames_size(count, nr_cpu_ids);
	buffer = vmalloc(bytes);
	result = buffer ? craton_frames_init(buffer, bytes, count, nr_cpu_ids,
					     CRATON_FRAMES_ALLOCATED, &frames)
			: -CRATON_FRAMES_NO_MEMORY;
	if (result == 0 && craton_board_begin(base, count) < 0)
		result = -CRATON_FRAMES_NO_MEMORY;
	if (result < 0) {
		pr_err("no state of %zu bytes for %lu frames: %s; the buddy allocator serves alone\n", bytes,
		       count, craton_frames_error(result));
		vfree(buffer);
		return -ENOMEM;
	}
	craton_zone = zone;
	static_branch_enable(&craton_frames_key);
	moved = craton_move_free_lists(zone, base + count);
	drain_all_pages(zone);
	register_memory_notifier(&hotplug);
	pr_info("page frames serve zone %s: %lu of %lu frames moved, %zu bytes of state\n", zone->name,
		moved, count, bytes);
	return 0;
}
late_initcall(craton_begin);

/* Page frames beside Linux's buddy allocator: the paper's benchmarks on both, in one kernel.
 *
 * The module takes a large contiguous range from the running kernel, gives it to craton_frames, and
 * times both allocators in turns (LLFree sections 2 and 5.2, 5.6). Each result is a line of JSON in
 * the kernel's log. A failing check is a line "failed", and the module does not load. */
#include <linux/cpumask.h>
#include <linux/gfp.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <linux/vmalloc.h>

#include "craton_frames.h"

#define BLOCK_ORDER 10u
#define BLOCK_FRAMES (1ul << BLOCK_ORDER)
#define HUGE_FRAMES (1ul << CRATON_FRAMES_HUGE_ORDER)
#define PAIRS 20000u
#define LEAST_BLOCKS 4096u
#define TURNS 100u
#define GFP_BENCH (GFP_KERNEL | __GFP_NOWARN | __GFP_NORETRY)
#define GFP_AS_IS (GFP_NOWAIT | __GFP_NOWARN | __GFP_NORETRY)

static unsigned int mib = 256;
module_param(mib, uint, 0444);
MODULE_PARM_DESC(mib, "memory that page frames take from the kernel, in MiB");
static unsigned int rounds = 3;
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "rounds of each benchmark");
static unsigned int orders[CRATON_FRAMES_MAX_ORDER + 1] = { 0, 1, 2, 3, 4, 6, 8, 9, 10 };
static unsigned int order_count = 9;
module_param_array(orders, uint, &order_count, 0444);
MODULE_PARM_DESC(orders, "orders of the benchmarks");
static bool plant;
module_param(plant, bool, 0444);
MODULE_PARM_DESC(plant, "plant a bug that the checks must find");

static bool lines;
module_param(lines, bool, 0444);
MODULE_PARM_DESC(lines, "mark single operations for the plugin lines.c, and run no benchmark");
static bool turns;
module_param(turns, bool, 0444);
MODULE_PARM_DESC(turns, "as `lines`, of CPUs that take turns at each operation");

static unsigned long *range; /* first frames of blocks, sorted */
static unsigned long blocks;
static unsigned long base; /* the zone's frame 0 */
static void *buffer;
static struct craton_frames *frames;
static atomic_long_t refusals;

void craton_frames_panic(const char *text, size_t bytes)
{
	pr_err("craton: {\"step\":\"failed\",\"why\":\"%.*s\"}\n", (int)bytes, text);
	BUG();
}

/* Both allocators by one interface. */
struct allocator {
	const char *name;
	struct page *(*get)(unsigned int order, unsigned int cpu);
	/* Without compaction. */
	struct page *(*get_now)(unsigned int order, unsigned int cpu);
	void (*put)(struct page *page, unsigned int order, unsigned int cpu);
};

static struct page *frames_get(unsigned int order, unsigned int cpu)
{
	long frame = craton_frames_get(frames, order, CRATON_FRAMES_MOVABLE, cpu);

	return frame < 0 ? NULL : pfn_to_page(base + frame);
}

static void frames_put(struct page *page, unsigned int order, unsigned int cpu)
{
	if (craton_frames_put(frames, page_to_pfn(page) - base, order, cpu) < 0)
		atomic_long_inc(&refusals);
}

static struct page *buddy_get(unsigned int order, unsigned int cpu)
{
	return alloc_pages(GFP_BENCH, order);
}

static struct page *buddy_get_now(unsigned int order, unsigned int cpu)
{
	return alloc_pages(GFP_AS_IS, order);
}

static void buddy_put(struct page *page, unsigned int order, unsigned int cpu)
{
	__free_pages(page, order);
}

static const struct allocator allocators[] = {
	{ "buddy", buddy_get, buddy_get_now, buddy_put },
	{ "craton", frames_get, frames_get, frames_put },
};

static int by_number(const void *a, const void *b)
{
	unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	return x < y ? -1 : x > y;
}

/* Takes `mib` of contiguous memory: the longest run of the largest blocks that are free. */
static int alloc_range(void)
{
	unsigned long wanted = mib * 256ul / BLOCK_FRAMES, most = totalram_pages() / BLOCK_FRAMES, i;
	unsigned long got = 0, begin = 0, best = 0, best_len = 0;

	if (wanted == 0) {
		pr_err("craton: mib=%u is less than a block of 4 MiB\n", mib);
		return -EINVAL;
	}
	range = vmalloc(array_size(most, sizeof(*range)));
	if (!range)
		return -ENOMEM;
	/* A quarter stays the kernel's. */
	while (got < most - most / 4) {
		struct page *page = alloc_pages(GFP_AS_IS, BLOCK_ORDER);

		if (!page)
			break;
		range[got++] = page_to_pfn(page);
	}
	sort(range, got, sizeof(*range), by_number, NULL);
	for (i = 1; i <= got; i++) {
		if (i < got && range[i] == range[i - 1] + BLOCK_FRAMES && i - begin < wanted)
			continue;
		if (i - begin > best_len) {
			best = begin;
			best_len = i - begin;
		}
		begin = i;
	}
	for (i = 0; i < got; i++)
		if (i < best || i >= best + min(best_len, wanted))
			__free_pages(pfn_to_page(range[i]), BLOCK_ORDER);
	blocks = min(best_len, wanted);
	memmove(range, range + best, blocks * sizeof(*range));
	if (blocks < wanted) {
		pr_err("craton: %lu MiB of contiguous memory are free, and mib=%u were asked for; give the guest more\n",
		       blocks * 4, mib);
		return -ENOMEM;
	}
	base = range[0];
	return 0;
}

static void free_range(void)
{
	while (blocks > 0)
		__free_pages(pfn_to_page(range[--blocks]), BLOCK_ORDER);
	vfree(range);
	vfree(buffer);
}

static int begin_frames(void)
{
	size_t all = blocks * BLOCK_FRAMES, bytes = craton_frames_size(all, nr_cpu_ids);
	int result;

	buffer = vmalloc(bytes);
	if (!buffer)
		return -ENOMEM;
	result = craton_frames_init(buffer, bytes, all, nr_cpu_ids, CRATON_FRAMES_FREE, &frames);
	if (result < 0) {
		pr_err("craton: %s\n", craton_frames_error(result));
		return -EINVAL;
	}
	pr_info("craton: {\"step\":\"memory\",\"frames\":%zu,\"metadata_bytes\":%zu,\"cpus\":%u}\n", all, bytes,
		num_online_cpus());
	return 0;
}

static int failed(const char *why)
{
	pr_err("craton: {\"step\":\"failed\",\"why\":\"%s\"}\n", why);
	return -EIO;
}

static int check_all_free(const char *after)
{
	struct craton_frames_stats stats;
	unsigned int cpu;

	for_each_online_cpu(cpu)
		craton_frames_drain(frames, cpu);
	craton_frames_stats(frames, &stats);
	if (craton_frames_validate(frames) < 0 || stats.free_frames != stats.frames || atomic_long_read(&refusals)) {
		pr_err("craton: after %s: %zu of %zu frames are free, %ld frees were refused\n", after, stats.free_frames,
		       stats.frames, atomic_long_read(&refusals));
		return failed("frames are missing, or the state is broken");
	}
	return 0;
}

/* All frames at once, each with its number: none serves twice, none is missing. */
static int check_frames(void)
{
	unsigned long all = blocks * BLOCK_FRAMES, got = 0, i;
	u32 *list = vmalloc(array_size(all, sizeof(*list)));
	long frame;
	int result = 0;

	if (!list)
		return -ENOMEM;
	while (got < all) {
		frame = craton_frames_get(frames, 0, CRATON_FRAMES_UNMOVABLE, got % num_online_cpus());
		if (frame < 0)
			break;
		*(unsigned long *)page_address(pfn_to_page(base + frame)) = frame;
		list[got++] = frame;
	}
	if (got == all && craton_frames_get(frames, 0, CRATON_FRAMES_UNMOVABLE, 0) != -CRATON_FRAMES_NO_MEMORY)
		result = failed("a frame beyond the last");
	if (got < all)
		result = failed("fewer frames than the range has");
	if (plant)
		*(unsigned long *)page_address(pfn_to_page(base + list[0])) = ~0ul;
	for (i = 0; i < got; i++) {
		if (*(unsigned long *)page_address(pfn_to_page(base + list[i])) != list[i] && !result)
			result = failed("a frame has another frame's number");
		craton_frames_put(frames, list[i], 0, i % num_online_cpus());
	}
	vfree(list);
	if (!result)
		result = check_all_free("the check");
	if (!result)
		pr_info("craton: {\"step\":\"check\",\"frames\":%lu}\n", got);
	return result;
}

enum { BULK, RANDOM, REPEAT, BENCHMARKS };
static const char *const names[BENCHMARKS] = { "bulk", "random", "repeat" };

/* One benchmark on some CPUs at once. */
struct crew {
	const struct allocator *of;
	unsigned int order, cpus, count;
	bool random, marked;
	atomic_t arrived[5], running;
	atomic64_t begin[2], end[2];
};

struct member {
	struct crew *crew;
	unsigned int cpu;
	struct task_struct *task;
	struct page **list;
	bool short_of_memory;
};

static void wait_for_all(struct crew *crew, unsigned int place)
{
	atomic_inc(&crew->arrived[place]);
	while (atomic_read(&crew->arrived[place]) < crew->cpus)
		cpu_relax();
}

static void note_extreme(atomic64_t *word, s64 value, bool least)
{
	s64 old = atomic64_read(word);

	while ((least ? value < old : value > old) && !atomic64_try_cmpxchg(word, &old, value))
		;
}

static void shuffle(struct page **list, unsigned int count)
{
	u64 seed = 0x9e3779b97f4a7c15ull;
	unsigned int i, other;

	for (i = count; i > 1; i--) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		other = (seed >> 11) % i;
		swap(list[i - 1], list[other]);
	}
}

static int work(void *data)
{
	struct member *me = data;
	struct crew *crew = me->crew;
	const struct allocator *of = crew->of;
	unsigned int i, got = 0;
	s64 begin;

	wait_for_all(crew, 0);
	begin = ktime_get_ns();
	if (me->list) {
		for (; got < crew->count; got++) {
			me->list[got] = of->get(crew->order, me->cpu);
			if (!me->list[got])
				break;
		}
	} else {
		for (i = 0; i < PAIRS; i++) {
			struct page *page = of->get(crew->order, me->cpu);

			if (!page)
				break;
			of->put(page, crew->order, me->cpu);
		}
		me->short_of_memory = i < PAIRS;
	}
	note_extreme(&crew->end[0], ktime_get_ns(), false);
	note_extreme(&crew->begin[0], begin, true);
	if (me->list) {
		me->short_of_memory = got < crew->count;
		if (crew->random)
			shuffle(me->list, got);
		wait_for_all(crew, 1);
		begin = ktime_get_ns();
		for (i = 0; i < got; i++)
			of->put(me->list[i], crew->order, me->cpu);
		note_extreme(&crew->end[1], ktime_get_ns(), false);
		note_extreme(&crew->begin[1], begin, true);
	}
	wait_for_all(crew, 2);
	atomic_dec(&crew->running);
	return 0;
}

/* Marks for lines.c: no-ops with a number. */
#define MARK(number) asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00; .long " #number ::: "memory")
#define MARK_BEGIN MARK(0x43520001)
#define MARK_END MARK(0x43520002)
#define MARK_NEXT MARK(0x43520003)
/* The plugin watches the word that is loaded next. */
#define MARK_WATCH(word) \
	asm volatile(".byte 0x0f, 0x1f, 0x84, 0x00; .long 0x43520004; movl (%0), %%eax" ::"r"(word) : "eax", "memory")

static void mark_section(const char *name, const struct allocator *of, unsigned int order, unsigned int cpus,
			 const char *call)
{
	static unsigned int section = 1; /* 0: before the first mark */

	MARK_NEXT;
	pr_info("craton: {\"step\":\"section\",\"section\":%u,\"name\":\"%s\",\"allocator\":\"%s\",\"order\":%u,\"cpus\":%u,\"call\":\"%s\"}\n",
		section++, name, of->name, order, cpus, call);
}

/* As `work`, with marks. After each operation the emulator goes on to the next CPU, at cpu_relax. */
static int work_marked(void *data)
{
	struct member *me = data;
	struct crew *crew = me->crew;
	const struct allocator *of = crew->of;
	bool is_first = me->cpu == 0;
	unsigned int i, got = 0;

	wait_for_all(crew, 0);
	if (!me->list) {
		for (i = 0; i < crew->count && !me->short_of_memory; i++) {
			struct page *page;

			MARK_BEGIN;
			page = of->get(crew->order, me->cpu);
			if (page)
				of->put(page, crew->order, me->cpu);
			MARK_END;
			me->short_of_memory = !page;
			cpu_relax();
		}
		wait_for_all(crew, 1);
		if (is_first)
			mark_section("repeat", of, crew->order, crew->cpus, "pair");
	} else {
		for (; got < crew->count; got++) {
			MARK_BEGIN;
			me->list[got] = of->get(crew->order, me->cpu);
			MARK_END;
			if (!me->list[got])
				break;
			cpu_relax();
		}
		me->short_of_memory = got < crew->count;
		wait_for_all(crew, 1);
		if (is_first)
			mark_section(crew->random ? "random" : "bulk", of, crew->order, crew->cpus, "get");
		if (crew->random)
			shuffle(me->list, got);
		wait_for_all(crew, 2);
		for (i = 0; i < got; i++) {
			MARK_BEGIN;
			of->put(me->list[i], crew->order, me->cpu);
			MARK_END;
			cpu_relax();
		}
		wait_for_all(crew, 3);
		if (is_first)
			mark_section(crew->random ? "random" : "bulk", of, crew->order, crew->cpus, "put");
	}
	wait_for_all(crew, 4);
	atomic_dec(&crew->running);
	return 0;
}

/* Picoseconds for each operation, of gets and of puts; 0: not measured. */
static int run_crew(struct crew *crew, bool pairs, u64 ps[2])
{
	struct member *members = kcalloc(crew->cpus, sizeof(*members), GFP_KERNEL);
	unsigned int cpu, started = 0, i;
	u64 operations = (u64)(pairs ? PAIRS : crew->count) * crew->cpus;
	int result = members ? 0 : -ENOMEM;

	for (i = 0; i < 2; i++) {
		atomic64_set(&crew->begin[i], S64_MAX);
		atomic64_set(&crew->end[i], 0);
	}
	for (i = 0; i < ARRAY_SIZE(crew->arrived); i++)
		atomic_set(&crew->arrived[i], 0);
	atomic_set(&crew->running, crew->cpus);
	for (i = 0; !result && i < crew->cpus && !pairs; i++) {
		members[i].list = vmalloc(array_size(crew->count, sizeof(struct page *)));
		if (!members[i].list)
			result = -ENOMEM;
	}
	for_each_online_cpu(cpu) {
		struct member *member;

		if (result || started == crew->cpus)
			break;
		member = &members[started];
		member->crew = crew;
		member->cpu = cpu;
		member->task = kthread_create(crew->marked ? work_marked : work, member, "craton/%u", cpu);
		if (IS_ERR(member->task)) {
			result = PTR_ERR(member->task);
			break;
		}
		kthread_bind(member->task, cpu);
		started++;
	}
	/* All or none: they wait for each other. */
	for (i = 0; i < started; i++) {
		if (result)
			kthread_stop(members[i].task);
		else
			wake_up_process(members[i].task);
	}
	while (!result && atomic_read(&crew->running) > 0)
		schedule_timeout_uninterruptible(1);
	for (i = 0; members && i < crew->cpus; i++) {
		if (members[i].short_of_memory && !result)
			result = failed("an allocator had less memory than a benchmark takes");
		vfree(members[i].list);
	}
	kfree(members);
	for (i = 0; i < 2; i++) {
		u64 ns = atomic64_read(&crew->end[i]) - atomic64_read(&crew->begin[i]);

		ps[i] = pairs && i ? 0 : div64_u64(ns * 1000, operations);
	}
	return result;
}

static int bench(unsigned int which, unsigned int cpus, unsigned int order, unsigned int round)
{
	/* Half of the range. */
	unsigned long count = blocks * BLOCK_FRAMES / 2 / cpus >> order;
	bool pairs = which == REPEAT;
	/* Large orders have few blocks: several passes make a figure. */
	unsigned int passes = pairs ? 1 : clamp_t(unsigned int, LEAST_BLOCKS / (count * cpus + 1), 1, 32);
	unsigned int i, pass;
	int result;

	/* A CPU would have no block. */
	if (!pairs && count == 0)
		return 0;
	for (i = 0; i < ARRAY_SIZE(allocators); i++) {
		struct crew crew = { .of = &allocators[i], .order = order, .cpus = cpus, .count = count,
				     .random = which == RANDOM };
		u64 ps[2] = {}, of_pass[2];

		for (pass = 0; pass < passes; pass++) {
			result = run_crew(&crew, pairs, of_pass);
			if (result)
				return result;
			ps[0] += of_pass[0] / passes;
			ps[1] += of_pass[1] / passes;
		}
		if (pairs)
			pr_info("craton: {\"step\":\"bench\",\"name\":\"%s\",\"allocator\":\"%s\",\"order\":%u,\"cpus\":%u,\"round\":%u,\"pair_ps\":%llu}\n",
				names[which], allocators[i].name, order, cpus, round, ps[0]);
		else
			pr_info("craton: {\"step\":\"bench\",\"name\":\"%s\",\"allocator\":\"%s\",\"order\":%u,\"cpus\":%u,\"round\":%u,\"get_ps\":%llu,\"put_ps\":%llu}\n",
				names[which], allocators[i].name, order, cpus, round, ps[0], ps[1]);
		cond_resched();
	}
	return 0;
}

/* Single operations of one CPU, each between marks: bulk, then repeat. */
static int mark_operations(const struct allocator *of, unsigned int order)
{
	unsigned int count = order ? 64 : 8192, i, got;
	struct page **list = vmalloc(array_size(count, sizeof(*list)));

	if (!list)
		return -ENOMEM;
	for (got = 0; got < count; got++) {
		MARK_BEGIN;
		list[got] = of->get(order, 0);
		MARK_END;
		if (!list[got])
			break;
	}
	mark_section("bulk", of, order, 1, "get");
	for (i = 0; i < got; i++) {
		MARK_BEGIN;
		of->put(list[i], order, 0);
		MARK_END;
	}
	mark_section("bulk", of, order, 1, "put");
	for (i = 0; i < 2 * count; i++) {
		if (i % 2) {
			of->put(list[0], order, 0);
			continue;
		}
		MARK_BEGIN;
		list[0] = of->get(order, 0);
		MARK_END;
	}
	mark_section("repeat", of, order, 1, "get");
	for (i = 0; i < count; i++) {
		list[0] = of->get(order, 0);
		MARK_BEGIN;
		of->put(list[0], order, 0);
		MARK_END;
	}
	mark_section("repeat", of, order, 1, "put");
	vfree(list);
	return got < count ? failed("an allocator had less memory than a benchmark takes") : 0;
}

static int mark_all(void)
{
	unsigned int i, order;
	int result = check_frames();

	MARK_NEXT; /* what the check left */
	for (i = 0; !result && i < ARRAY_SIZE(allocators); i++)
		for (order = 0; !result && order <= CRATON_FRAMES_HUGE_ORDER; order += CRATON_FRAMES_HUGE_ORDER)
			result = mark_operations(&allocators[i], order);
	if (!result)
		result = check_all_free("the marks");
	if (!result)
		pr_info("craton: {\"step\":\"done\"}\n");
	return result;
}

/* What CPUs share: bulk, random and repeat of CPUs that take turns, 1 to all. */
static int mark_turns(void)
{
	unsigned int i, order, cpus, which;
	int result = check_frames();

	/* All memory of a guest below 3 GiB is in one zone, but for 16 MiB. */
	MARK_WATCH(&page_zone(pfn_to_page(base))->lock);
	MARK_NEXT; /* what the check left */
	for (i = 0; !result && i < ARRAY_SIZE(allocators); i++)
		for (order = 0; !result && order <= CRATON_FRAMES_HUGE_ORDER; order += CRATON_FRAMES_HUGE_ORDER)
			for (cpus = 1; !result && cpus <= num_online_cpus(); cpus *= 2)
				for (which = 0; !result && which < BENCHMARKS; which++) {
					/* More than per-CPU lists hold. */
					struct crew crew = { .of = &allocators[i], .order = order, .cpus = cpus,
							     .count = order ? 16 : 4096,
							     .random = which == RANDOM, .marked = true };
					u64 none[2];

					result = run_crew(&crew, which == REPEAT, none);
				}
	if (!result)
		result = check_all_free("the marks");
	if (!result)
		pr_info("craton: {\"step\":\"done\"}\n");
	return result;
}

/* Huge frames that can be had now, without compaction. */
static unsigned long count_huge(const struct allocator *of, struct page **list, unsigned long most)
{
	unsigned long got = 0, i;

	while (got < most) {
		struct page *page = of->get_now(CRATON_FRAMES_HUGE_ORDER, 0);

		if (!page)
			break;
		list[got++] = page;
	}
	for (i = 0; i < got; i++)
		of->put(list[i], CRATON_FRAMES_HUGE_ORDER, 0);
	return got;
}

/* 90 % taken, half of it freed at random, then a tenth moved each turn (LLFree section 5.6). The
 * buddy allocator gets as much memory as page frames have: the rest is held meanwhile. */
static int fragmentation(const struct allocator *of)
{
	unsigned long all = blocks * BLOCK_FRAMES, fill, live, i, held_len = 0, got = 0, huge, turn;
	struct page **list = vmalloc(array_size(all, sizeof(*list)));
	struct page **held = vmalloc(array_size(totalram_pages() / BLOCK_FRAMES, sizeof(*held)));
	struct page **probe = vmalloc(array_size(all / HUGE_FRAMES, sizeof(*probe)));
	u64 seed = 88172645463325252ull;
	int result = 0;

	if (!list || !held || !probe) {
		result = -ENOMEM;
		goto out;
	}
	if (of->get == buddy_get) {
		while (global_zone_page_state(NR_FREE_PAGES) > all + BLOCK_FRAMES) {
			struct page *page = alloc_pages(GFP_AS_IS, BLOCK_ORDER);

			if (!page)
				break;
			held[held_len++] = page;
		}
	}
	huge = count_huge(of, probe, all / HUGE_FRAMES);
	fill = huge * HUGE_FRAMES / 10 * 9;
	while (got < fill) {
		list[got] = of->get_now(0, 0);
		if (!list[got])
			break;
		got++;
	}
	shuffle(list, got);
	live = got / 2;
	for (i = live; i < got; i++)
		of->put(list[i], 0, 0);
	for (turn = 0; turn <= TURNS; turn++) {
		if (of->get != buddy_get)
			craton_frames_drain(frames, 0);
		if (turn % 20 == 0)
			pr_info("craton: {\"step\":\"fragmentation\",\"allocator\":\"%s\",\"turn\":%lu,\"free_huge_frames\":%lu,\"possible\":%lu}\n",
				of->name, turn, count_huge(of, probe, all / HUGE_FRAMES), huge - live / HUGE_FRAMES);
		for (i = 0; i < live / 10; i++) {
			seed ^= seed << 13;
			seed ^= seed >> 7;
			seed ^= seed << 17;
			swap(list[i], list[i + (seed >> 11) % (live - i)]);
			of->put(list[i], 0, 0);
		}
		for (i = 0; i < live / 10; i++) {
			list[i] = of->get_now(0, 0);
			if (!list[i]) {
				result = failed("fragmentation ran out of memory");
				/* Freed, and not allocated again. */
				memset(&list[i], 0, (live / 10 - i) * sizeof(*list));
				goto free_all;
			}
		}
		cond_resched();
	}
free_all:
	for (i = 0; i < live; i++)
		if (list[i])
			of->put(list[i], 0, 0);
	while (held_len > 0)
		__free_pages(held[--held_len], BLOCK_ORDER);
out:
	vfree(list);
	vfree(held);
	vfree(probe);
	return result;
}

static int run_all(void)
{
	unsigned int cpus, order, which, round;
	int result = 0;

	for (order = 0; order < order_count; order++)
		if (orders[order] > BLOCK_ORDER) {
			pr_err("craton: orders=%u is larger than Linux's largest, %u\n", orders[order], BLOCK_ORDER);
			return -EINVAL;
		}
	result = check_frames();
	for (round = 0; !result && round < rounds; round++)
		for (cpus = 1; !result && cpus <= num_online_cpus(); cpus *= 2)
			for (order = 0; !result && order < order_count; order++)
				for (which = 0; !result && which < BENCHMARKS; which++)
					result = bench(which, cpus, orders[order], round);
	if (!result)
		result = check_all_free("the benchmarks");
	if (!result)
		result = fragmentation(&allocators[1]);
	if (!result)
		result = check_all_free("fragmentation");
	if (!result)
		result = fragmentation(&allocators[0]);
	if (!result)
		pr_info("craton: {\"step\":\"done\"}\n");
	return result;
}

static int __init begin(void)
{
	int result = alloc_range();

	if (!result)
		result = begin_frames();
	if (!result)
		result = turns ? mark_turns() : lines ? mark_all() : run_all();
	if (result)
		free_range();
	return result;
}

static void __exit end(void)
{
	free_range();
}

module_init(begin);
module_exit(end);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Page frames of Craton beside the buddy allocator");

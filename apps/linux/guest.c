/* The first program of the Linux guest: loads its memory as its arguments say, and checks it.
 *
 *   fill=N    N times: a process for each CPU writes nearly all free memory, reads it, and ends
 *   fork=N    N times: children change half of what they share with their parent
 *   storm     forks until the kernel refuses or kills a child
 *   files     writes a file of a quarter of the memory, reads it, and removes it
 *   oom=N     N times: a process allocates until the kernel kills it
 *   write=N   the paper's write benchmark (LLFree section 5.8), N rounds
 *   memcached=N   memcached under load, N turns (memcached.c)
 *   idle=N    sleeps for N seconds
 *   offer     page frames offer free huge frames to the host, which takes them
 *   plant=X   twice, in-use: a bug in the kernel; word: one in this program
 *
 * Each step prints a line of JSON. The last says "done", or "failed" and why: a check failed, memory
 * did not come back, the kernel is tainted by a warning, or its page frames contradict themselves. */
#define _GNU_SOURCE
#include "guest.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

/* Left to the kernel while memory is full, beyond its watermarks. */
#define RESERVE (24 * MIB)
/* Bytes that may be missing after a step: caches grow once. */
#define SLACK (8 * MIB)
#define MOST_CHILDREN 4096

static long cpus;

static void end(void)
{
	sync();
	reboot(RB_POWER_OFF);
	_exit(0);
}

void say(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	printf("guest: ");
	vprintf(format, arguments);
	printf("\n");
	fflush(stdout);
	va_end(arguments);
}

void fail(const char *format, ...)
{
	char why[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	say("{\"step\":\"failed\",\"why\":\"%s\"}", why);
	if (getpid() == 1)
		end();
	_exit(1);
}

long number_in(const char *path, const char *name, long unit)
{
	char line[256];
	long number = -1;
	FILE *file = fopen(path, "r");

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			number = strtol(line + strlen(name), NULL, 10) * unit;
	if (file)
		fclose(file);
	return number;
}

int write_to(const char *path, const char *text)
{
	int file = open(path, O_WRONLY), error = 0;

	if (file < 0)
		return errno;
	if (write(file, text, strlen(text)) < 0)
		error = errno;
	close(file);
	return error;
}

long free_bytes(void)
{
	write_to("/proc/sys/vm/drop_caches", "3");
	return number_in("/proc/meminfo", "MemFree:", 1024);
}

static char *map(size_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("%zu bytes cannot be mapped: %s", bytes, strerror(errno));
	return at;
}

static uint64_t word_of(uint64_t seed, size_t at)
{
	return (seed + at) * 0x9e3779b97f4a7c15ull;
}

static void fill(char *memory, size_t bytes, uint64_t seed)
{
	uint64_t *words = (uint64_t *)memory;

	for (size_t at = 0; at < bytes / 8; at++)
		words[at] = word_of(seed, at);
}

static void check(const char *memory, size_t bytes, uint64_t seed)
{
	const uint64_t *words = (const uint64_t *)memory;

	for (size_t at = 0; at < bytes / 8; at++)
		if (words[at] != word_of(seed, at))
			fail("page %zu of process %d was written to by another: word %zu is %#llx, not %#llx",
			     at * 8 / PAGE, getpid(), at, (unsigned long long)words[at],
			     (unsigned long long)word_of(seed, at));
}

static void run_on(long cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

/* Children wait for each other here. */
struct barrier {
	_Atomic long arrived;
};

static void wait_for_all(struct barrier *barrier, long all)
{
	barrier->arrived++;
	/* An emulator whose CPUs take turns goes on to the next at a pause. */
	for (unsigned int turn = 1; barrier->arrived < all; turn++) {
		__builtin_ia32_pause();
		if (turn % 64 == 0)
			sched_yield();
	}
}

/* Marks for apps/module/lines.c. */
#define MARK(number) __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00; .long " #number ::: "memory")
#define MARK_BEGIN MARK(0x43520001)
#define MARK_END MARK(0x43520002)
#define MARK_NEXT MARK(0x43520003)

static void *shared(size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		fail("%zu bytes of shared memory: %s", bytes, strerror(errno));
	return at;
}

static void join(pid_t child, const char *step)
{
	int status = 0;

	if (waitpid(child, &status, 0) != child)
		fail("%s: no child %d", step, child);
	if (status != 0)
		fail("%s: a child ended with status %#x", step, status);
}

/* One half by small pages, the other by huge pages. */
static void fill_all(int round, int is_planted)
{
	size_t kept = RESERVE + 2 * number_in("/proc/sys/vm/min_free_kbytes", "", 1024);
	size_t there = free_bytes(), least = kept + cpus * 2 * HUGE, share;
	struct barrier *barrier = shared(PAGE);
	pid_t children[cpus];

	if (there < least)
		fail("fill: %zu KiB are free, and %ld CPUs need %zu: give the guest more MEMORY", there / 1024, cpus, least / 1024);
	share = (there - kept) / cpus / (2 * HUGE) * HUGE;
	for (long cpu = 0; cpu < cpus; cpu++) {
		children[cpu] = fork();
		if (children[cpu] < 0)
			fail("fill: fork: %s", strerror(errno));
		if (children[cpu] == 0) {
			uint64_t seed = (uint64_t)(round * cpus + cpu + 1) << 40;
			char *small = map(share), *huge = map(share + HUGE);

			run_on(cpu);
			huge = (char *)(((uintptr_t)huge + HUGE - 1) & -HUGE);
			madvise(small, share, MADV_NOHUGEPAGE);
			madvise(huge, share, MADV_HUGEPAGE);
			fill(huge, share, seed);
			fill(small, share, seed + share);
			wait_for_all(barrier, cpus);
			if (is_planted && cpu == 0)
				small[share / 2] ^= 1;
			check(small, share, seed + share);
			check(huge, share, seed);
			_exit(0);
		}
	}
	for (long cpu = 0; cpu < cpus; cpu++)
		join(children[cpu], "fill");
	munmap(barrier, PAGE);
	say("{\"step\":\"fill\",\"round\":%d,\"processes\":%ld,\"bytes\":%zu}", round, cpus, 2 * share * cpus);
}

static void fork_all(int round)
{
	size_t bytes = 16 * MIB;
	char *memory = map(bytes);
	pid_t children[cpus];

	fill(memory, bytes, round);
	for (long cpu = 0; cpu < cpus; cpu++) {
		children[cpu] = fork();
		if (children[cpu] < 0)
			fail("fork: %s", strerror(errno));
		if (children[cpu] == 0) {
			fill(memory, bytes / 2, cpu + 77);
			check(memory, bytes / 2, cpu + 77);
			check(memory + bytes / 2, bytes / 2, round + bytes / 16);
			_exit(0);
		}
	}
	for (long cpu = 0; cpu < cpus; cpu++)
		join(children[cpu], "fork");
	check(memory, bytes, round);
	munmap(memory, bytes);
	say("{\"step\":\"fork\",\"round\":%d}", round);
}

static void storm(int round)
{
	static pid_t children[MOST_CHILDREN];
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	int count = 0, error = 0;

	setrlimit(RLIMIT_NPROC, &limit);
	write_to("/proc/sys/kernel/threads-max", "30000");
	while (count < MOST_CHILDREN) {
		pid_t child = fork();

		if (child < 0) {
			error = errno;
			break;
		}
		if (child == 0) {
			write_to("/proc/self/oom_score_adj", "1000");
			pause();
			_exit(0);
		}
		children[count++] = child;
		if (waitpid(-1, NULL, WNOHANG) > 0) {
			error = ENOMEM;
			break;
		}
	}
	for (int i = 0; i < count; i++)
		kill(children[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
	say("{\"step\":\"storm\",\"round\":%d,\"processes\":%d,\"end\":\"%s\"}", round, count, error ? strerror(error) : "all");
}

static void files(int round)
{
	size_t bytes = free_bytes() / 4 / MIB * MIB;
	uint64_t *part = (uint64_t *)map(MIB);
	int file = open("/tmp/file", O_RDWR | O_CREAT | O_TRUNC, 0600);

	if (file < 0)
		fail("/tmp/file: %s", strerror(errno));
	for (size_t at = 0; at < bytes; at += MIB) {
		fill((char *)part, MIB, at);
		if (write(file, part, MIB) != MIB)
			fail("/tmp/file is not written at %zu: %s", at, strerror(errno));
	}
	for (size_t at = 0; at < bytes; at += MIB) {
		if (pread(file, part, MIB, at) != MIB)
			fail("/tmp/file is not read at %zu: %s", at, strerror(errno));
		check((char *)part, MIB, at);
	}
	close(file);
	unlink("/tmp/file");
	munmap(part, MIB);
	say("{\"step\":\"files\",\"round\":%d,\"bytes\":%zu}", round, bytes);
}

static void oom(int round)
{
	int status = 0;
	pid_t child = fork();

	if (child < 0)
		fail("oom: fork: %s", strerror(errno));
	if (child == 0) {
		size_t bytes = number_in("/proc/meminfo", "MemTotal:", 1024) * 2;
		char *memory = map(bytes);

		write_to("/proc/self/oom_score_adj", "1000");
		for (size_t at = 0; at < bytes; at += PAGE)
			memory[at] = 1;
		_exit(0);
	}
	waitpid(child, &status, 0);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
		fail("oom: the process was not killed: status %#x", status);
	say("{\"step\":\"oom\",\"round\":%d}", round);
}

uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

struct write_times {
	struct barrier start, filled, freed;
	uint64_t begin, populated, end;
};

/* The first byte of each page, then madvise. */
static void write_benchmark(int round, int is_huge)
{
	size_t share = free_bytes() * 3 / 4 / cpus / HUGE * HUGE, unit = is_huge ? HUGE : PAGE;
	struct write_times *times = shared(sizeof(*times));
	pid_t children[cpus];

	for (long cpu = 0; cpu < cpus; cpu++) {
		children[cpu] = fork();
		if (children[cpu] < 0)
			fail("write: fork: %s", strerror(errno));
		if (children[cpu] == 0) {
			char *memory = map(share + HUGE);

			run_on(cpu);
			memory = (char *)(((uintptr_t)memory + HUGE - 1) & -HUGE);
			madvise(memory, share, is_huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
			wait_for_all(&times->start, cpus);
			MARK_BEGIN;
			if (cpu == 0)
				times->begin = now();
			for (size_t at = 0; at < share; at += unit)
				memory[at] = 1;
			wait_for_all(&times->filled, cpus);
			if (cpu == 0)
				times->populated = now();
			madvise(memory, share, MADV_DONTNEED);
			wait_for_all(&times->freed, cpus);
			if (cpu == 0)
				times->end = now();
			MARK_END;
			MARK_NEXT;
			_exit(0);
		}
	}
	for (long cpu = 0; cpu < cpus; cpu++)
		join(children[cpu], "write");
	say("{\"step\":\"write\",\"round\":%d,\"cpus\":%ld,\"order\":%d,\"blocks\":%zu,\"populate\":%llu,\"free\":%llu}",
	    round, cpus, is_huge ? 9 : 0, share / unit * cpus, (unsigned long long)(times->populated - times->begin),
	    (unsigned long long)(times->end - times->populated));
	munmap(times, sizeof(*times));
}

static void idle(int seconds)
{
	struct timespec rest = { .tv_sec = seconds };

	while (nanosleep(&rest, &rest) < 0)
		;
	say("{\"step\":\"idle\",\"seconds\":%d}", seconds);
}

/* craton-host reads the line with the board. */
static void offer(int round)
{
	long offline, taken = -1;
	int error;

	printf("{\"step\":\"board\",\"address\":%ld}\n", number_in("/proc/craton", "board", 1));
	fflush(stdout);
	MARK_BEGIN;
	error = write_to("/proc/craton", "offer");
	MARK_END;
	if (error)
		fail("offer: %s", strerror(error));
	offline = number_in("/proc/craton", "offline huge frames", 1);
	for (int turn = 0; turn < 100 && taken != offline; turn++) {
		usleep(100000);
		taken = number_in("/proc/craton", "taken by the host", 1);
	}
	say("{\"step\":\"offer\",\"round\":%d,\"huge_frames\":%ld,\"taken\":%ld}", round, offline, taken);
}

/* After each step. */
static void check_kernel(const char *step, long free_before)
{
	long tainted = number_in("/proc/sys/kernel/tainted", "", 1), after;
	int is_ours = number_in("/proc/craton", "frames", 1) >= 0;
	long total = number_in("/proc/meminfo", "MemTotal:", 1024);
	/* Zones without page frames also have per-CPU lists. */
	long slack = SLACK + (number_in("/proc/craton", "frames", 4096) < total ? total / 16 : 0);
	int error = is_ours ? write_to("/proc/craton", "check") : 0;

	if (tainted != 0)
		fail("%s: the kernel warned: its taint is %#lx", step, tainted);
	if (error)
		fail("%s: page frames contradict themselves: %s", step, strerror(error));
	/* Memory of a killed process comes back late. */
	for (int turn = 0; (after = free_bytes()) < free_before - slack; turn++) {
		if (turn == 50)
			fail("%s: %ld of %ld free bytes are back", step, after, free_before);
		usleep(20000);
	}
}

static void counters(void)
{
	char line[128];
	FILE *file = fopen("/proc/craton", "r");

	say("{\"step\":\"memory\",\"free\":%ld,\"total\":%ld}", free_bytes(),
	    number_in("/proc/meminfo", "MemTotal:", 1024));
	while (file && fgets(line, sizeof(line), file)) {
		unsigned long get, put, fallback;
		unsigned int order;

		if (sscanf(line, "order %u: get %lu put %lu fallback %lu", &order, &get, &put, &fallback) == 4 && get + put)
			say("{\"step\":\"counters\",\"order\":%u,\"get\":%lu,\"put\":%lu,\"fallback\":%lu}", order, get, put,
			    fallback);
	}
	if (file)
		fclose(file);
	if (number_in("/proc/craton", "frames", 1) < 0)
		say("{\"step\":\"counters\",\"page_frames\":false}");
}

static void fill_round(int round)
{
	fill_all(round, 0);
}

static void write_round(int round)
{
	for (int is_huge = 0; is_huge < 2; is_huge++)
		write_benchmark(round, is_huge);
}

/* `run` gets the round, or once the number after `=`. A step without marks is marked as a whole. */
static const struct {
	const char *name;
	void (*run)(int);
	int is_once, marks;
} steps[] = {
	{ "fill", fill_round, 0, 0 },
	{ "fork", fork_all, 0, 0 },
	{ "storm", storm, 0, 0 },
	{ "files", files, 0, 0 },
	{ "oom", oom, 0, 0 },
	{ "write", write_round, 0, 1 },
	{ "offer", offer, 0, 1 },
	{ "idle", idle, 1, 0 },
	{ "memcached", load_memcached, 1, 0 },
};

static void plant(const char *bug, long free_before)
{
	char text[32];
	int is_word = !strcmp(bug, "word"), error = 0;

	snprintf(text, sizeof(text), "plant %s", bug);
	if (!is_word)
		error = write_to("/proc/craton", text);
	if (error)
		fail("%s: %s", text, strerror(error));
	fill_all(0, is_word);
	check_kernel("plant", free_before);
}

static void step(const char *argument, long free_before)
{
	size_t length = strcspn(argument, "="), i = 0, all = sizeof(steps) / sizeof(*steps);
	const char *value = argument[length] ? argument + length + 1 : "";
	int number = *value ? atoi(value) : 1;

	if (!strncmp(argument, "plant=", 6)) {
		plant(value, free_before);
		return;
	}
	while (i < all && (strlen(steps[i].name) != length || strncmp(argument, steps[i].name, length)))
		i++;
	if (i == all)
		fail("no step %s; the head of apps/linux/guest.c lists them", argument);
	if (number < 1)
		fail("%s: the number is at least 1", argument);
	if (!steps[i].marks)
		MARK_BEGIN;
	if (steps[i].is_once)
		steps[i].run(number);
	for (int round = 0; !steps[i].is_once && round < number; round++) {
		steps[i].run(round);
		check_kernel(steps[i].name, free_before);
	}
	MARK_END;
	MARK_NEXT;
	check_kernel(steps[i].name, free_before);
}

int main(int count, char **arguments)
{
	static const char *const places[][2] = {
		{ "proc", "/proc" }, { "sysfs", "/sys" }, { "devtmpfs", "/dev" }, { "tmpfs", "/tmp" } };
	long free_before;

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		mkdir(places[i][1], 0755);
		if (mount("none", places[i][1], places[i][0], 0, NULL) < 0)
			fail("%s cannot be mounted: %s", places[i][1], strerror(errno));
	}
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	say("{\"step\":\"up\",\"cpus\":%ld,\"ns\":%llu}", cpus, (unsigned long long)now());
	write_to("/proc/sys/vm/overcommit_memory", "1");
	write_to("/proc/sys/vm/oom_dump_tasks", "0");
	/* Linux turns huge pages off below 512 MiB. */
	if (write_to("/sys/kernel/mm/transparent_hugepage/enabled", "madvise"))
		fail("the kernel has no huge pages");
	free_before = free_bytes();
	counters();
	for (int i = 1; i < count; i++)
		step(arguments[i], free_before);
	counters();
	say("{\"step\":\"done\"}");
	end();
}

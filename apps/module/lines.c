/* A plugin of QEMU's: which cache lines the guest touches between marks of the module's, and which
 * of them other CPUs had.
 *
 *   -plugin lines.so,out=FILE[,lines=off|addresses]
 *
 * `off`: it counts instructions alone; `addresses`: and how often each of them ran, as lines
 * `at SECTION ADDRESS COUNT`.
 * A mark is a no-op with a number: `nopl NUMBER(%rax,%rax,1)`, eight bytes. `begin` and `end` enclose
 * one operation of a CPU, `next` ends a section; sections count from 0. Interrupts count too. For each
 * section the file gets a line of JSON: operations, and the means of an operation:
 *
 *   instructions   and those while the CPU held the lock that `watch` names (`locked`)
 *   lines          distinct ones, by where they lie, and how many of them were written to
 *   moved          lines that another CPU wrote to since this one's last access, or that this one
 *                  writes to and another has
 *   acquired       how often it took the lock; `waits`: how often it found the lock taken
 *
 * The lock is Linux's queued spin lock, and `watch` is followed by a load of its word. With
 * `-accel tcg,thread=single` one thread runs all CPUs, so the plugin needs no lock. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK_BEGIN 0x43520001u
#define MARK_END 0x43520002u
#define MARK_NEXT 0x43520003u
#define MARK_WATCH 0x43520004u
#define MOST_LINES 65536
#define MOST_CPUS 16
#define ALL_LINES (1u << 20) /* of all CPUs */

/* What of QEMU's plugin interface, version 1, is used. */
typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS = 0 };
enum { LOADS_AND_STORES = 3 };
extern void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
extern void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, void (*)(unsigned, void *), int, void *);
extern void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
					     void (*)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *), int, int, void *);
extern size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
extern struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
extern const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
extern size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
extern uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
extern bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;

/* Linux's layout without randomization. */
enum { VMALLOC, PAGES, STACK, DATA, DIRECT, CLASSES };
static const char *const names[CLASSES] = { "vmalloc", "struct_page", "stack", "kernel_data", "direct_map" };

static FILE *out;
static bool has_lines = true, has_addresses;
static unsigned section;
static uint64_t operations, instructions, sum[CLASSES], stored[CLASSES], moved, locked, acquired, waits;

/* Between marks. */
static struct cpu {
	bool is_on;
	uint64_t stack;
	unsigned count;
	struct { uint64_t line; bool is_stored, is_moved; } lines[MOST_LINES];
} cpus[MOST_CPUS];

/* The CPUs that have a line as it is now. */
static struct { uint64_t line; uint32_t holders; bool is_written; } all_lines[ALL_LINES];

/* A lock's word. */
enum { NO_CPU = -1 };
static uint64_t watched;
static bool is_awaited;
static int lock_holder = NO_CPU;

/* An instruction of a translated block. */
struct site {
	struct site *next;
	uint64_t address, count;
	bool is_call, is_unlock;
};
static struct site *sites;

static int class_of(uint64_t address, uint64_t stack)
{
	if (address - stack + 8192 < 16384)
		return STACK;
	if (address >= 0xffffffff80000000ull)
		return DATA;
	if (address >= 0xffffea0000000000ull)
		return PAGES;
	if (address >= 0xffffc90000000000ull)
		return VMALLOC;
	return DIRECT;
}

static void begin(unsigned cpu, void *unused)
{
	cpus[cpu].is_on = true;
	cpus[cpu].count = 0;
	cpus[cpu].stack = 0;
}

static void end(unsigned cpu, void *unused)
{
	struct cpu *of = &cpus[cpu];

	if (!of->is_on)
		return;
	of->is_on = false;
	operations++;
	for (unsigned i = 0; i < of->count; i++) {
		int class = class_of(of->lines[i].line << 6, of->stack);

		sum[class]++;
		stored[class] += of->lines[i].is_stored;
		moved += of->lines[i].is_moved;
	}
}

static void next(unsigned cpu, void *unused)
{
	fprintf(out, "{\"step\":\"lines\",\"section\":%u,\"operations\":%llu", section++, (unsigned long long)operations);
	if (operations) {
		fprintf(out, ",\"instructions\":%.2f", (double)instructions / operations);
		for (int class = 0; has_lines && class < CLASSES; class++)
			fprintf(out, ",\"%s\":%.2f,\"%s_written\":%.2f", names[class], (double)sum[class] / operations,
				names[class], (double)stored[class] / operations);
		if (has_lines)
			fprintf(out, ",\"moved\":%.2f", (double)moved / operations);
		if (watched)
			fprintf(out, ",\"locked\":%.2f,\"acquired\":%.4f,\"waits\":%.4f", (double)locked / operations,
				(double)acquired / operations, (double)waits / operations);
	}
	fprintf(out, "}\n");
	for (struct site *site = sites; site; site = site->next) {
		if (has_addresses && site->count)
			fprintf(out, "at %u %016llx %llu\n", section - 1, (unsigned long long)site->address,
				(unsigned long long)site->count);
		site->count = 0;
	}
	fflush(out);
	operations = instructions = moved = locked = acquired = waits = 0;
	memset(sum, 0, sizeof(sum));
	memset(stored, 0, sizeof(stored));
}

static void watch(unsigned cpu, void *unused)
{
	is_awaited = true;
}

static void executed(unsigned cpu, void *site)
{
	if (!cpus[cpu].is_on)
		return;
	instructions++;
	locked += lock_holder == (int)cpu;
	((struct site *)site)->count++;
}

static struct site *new_site(uint64_t address, const unsigned char *bytes, size_t size)
{
	struct site *site = calloc(1, sizeof(*site));

	if (!site) {
		fprintf(stderr, "lines.so: no memory for an instruction\n");
		abort();
	}
	site->address = address;
	site->is_call = bytes[0] == 0xe8 || bytes[0] == 0xff;
	/* movb $0, … */
	site->is_unlock = bytes[0] == 0xc6 && size >= 3 && bytes[size - 1] == 0;
	site->next = sites;
	sites = site;
	return site;
}

/* Whether the access moves the line to this CPU. */
static bool moves(unsigned cpu, uint64_t line, bool is_stored)
{
	uint32_t mine = 1u << cpu, before;
	bool is_written;
	unsigned at = line * 0x9e3779b97f4a7c15ull >> 44, tries = 0;

	while (all_lines[at].line != line && all_lines[at].holders) {
		at = (at + 1) % ALL_LINES;
		if (++tries == ALL_LINES) {
			fprintf(stderr, "lines.so: the guest touches more than %u lines\n", ALL_LINES);
			abort();
		}
	}
	all_lines[at].line = line;
	before = all_lines[at].holders;
	is_written = all_lines[at].is_written;
	all_lines[at].holders = is_stored ? mine : before | mine;
	all_lines[at].is_written |= is_stored;
	return is_stored ? before & ~mine : is_written && !(before & mine);
}

/* A store to the lock's word takes or frees it. */
static void touched_lock(unsigned cpu, bool is_unlock)
{
	bool is_on = cpus[cpu].is_on;

	if (is_unlock) {
		lock_holder = NO_CPU;
	} else if (lock_holder == NO_CPU) {
		lock_holder = cpu;
		acquired += is_on;
	} else if (lock_holder != (int)cpu) {
		waits += is_on;
	}
}

static void touched(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *data)
{
	const struct site *site = data;
	struct cpu *of = &cpus[cpu];
	uint64_t line = address >> 6;
	bool is_stored = qemu_plugin_mem_is_store(info);
	unsigned i;

	if (is_awaited) {
		watched = address;
		is_awaited = false;
	}
	if (is_stored && address == watched)
		touched_lock(cpu, site->is_unlock);
	if (!of->is_on)
		return;
	/* The first call stores its return address on the stack. */
	if (!of->stack && site->is_call && is_stored)
		of->stack = address;
	for (i = 0; i < of->count && of->lines[i].line != line; i++)
		;
	if (i == MOST_LINES)
		return;
	if (i == of->count) {
		of->lines[i].line = line;
		of->lines[i].is_stored = of->lines[i].is_moved = false;
		of->count++;
	}
	of->lines[i].is_stored |= is_stored;
	of->lines[i].is_moved |= moves(cpu, line, is_stored);
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		const unsigned char *bytes = qemu_plugin_insn_data(insn);
		size_t size = qemu_plugin_insn_size(insn);
		struct site *site = new_site(qemu_plugin_insn_vaddr(insn), bytes, size);
		uint32_t mark = 0;

		if (size == 8 && !memcmp(bytes, "\x0f\x1f\x84\x00", 4))
			memcpy(&mark, bytes + 4, 4);
		if (mark == MARK_BEGIN)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, NO_REGISTERS, NULL);
		else if (mark == MARK_END)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, end, NO_REGISTERS, NULL);
		else if (mark == MARK_NEXT)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, next, NO_REGISTERS, NULL);
		else if (mark == MARK_WATCH)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, watch, NO_REGISTERS, NULL);
		else
			qemu_plugin_register_vcpu_insn_exec_cb(insn, executed, NO_REGISTERS, site);
		if (has_lines)
			qemu_plugin_register_vcpu_mem_cb(insn, touched, NO_REGISTERS, LOADS_AND_STORES, site);
	}
}

/* The begin of QEMU's qemu_info_t. */
struct machine {
	const char *target;
	int least_version, version;
	bool is_system;
	int cpus, most_cpus;
};

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const struct machine *machine, int argc,
								char **argv)
{
	const char *path = argc > 0 && !strncmp(argv[0], "out=", 4) ? argv[0] + 4 : NULL;

	out = path ? fopen(path, "w") : NULL;
	if (machine->is_system && machine->most_cpus > MOST_CPUS) {
		fprintf(stderr, "lines.so: the guest has %d CPUs, and the plugin counts %d at most\n", machine->most_cpus, MOST_CPUS);
		return -1;
	}
	if (!out) {
		fprintf(stderr, "lines.so: out=FILE is missing, or %s cannot be written to\n", path ? path : "no file");
		return -1;
	}
	has_lines = argc < 2;
	has_addresses = argc == 2 && !strcmp(argv[1], "lines=addresses");
	if (argc > 2 || (argc == 2 && !has_addresses && strcmp(argv[1], "lines=off"))) {
		fprintf(stderr, "lines.so: %s: lines is off or addresses\n", argv[argc - 1]);
		return -1;
	}
	qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
	return 0;
}

/* A plugin of QEMU's: which cache lines the guest touches between marks of the module's.
 *
 *   -plugin lines.so,out=FILE[,lines=off|addresses]
 *
 * `off`: it counts instructions alone; `addresses`: and how often each of them ran, as lines
 * `at SECTION ADDRESS COUNT`.
 * A mark is a no-op with a number: `nopl NUMBER(%rax,%rax,1)`, eight bytes. `begin` and `end` enclose
 * one operation, `next` ends a section; sections count from 0. For each section the file gets a line
 * of JSON: operations, and the mean of instructions and of distinct lines, by where they lie. One CPU
 * at a time may be between marks; what it does in interrupts counts. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK_BEGIN 0x43520001u
#define MARK_END 0x43520002u
#define MARK_NEXT 0x43520003u
#define MOST_LINES 65536

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
static bool is_on, has_lines = true, has_addresses;
static unsigned cpu_on, section;
static uint64_t operations, instructions, sum[CLASSES], stored[CLASSES], stack;
static struct { uint64_t line; bool is_stored; } lines[MOST_LINES];
static unsigned count;

/* An instruction of a translated block. */
struct site {
	struct site *next;
	uint64_t address, count;
};
static struct site *sites;

static int class_of(uint64_t address)
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
	is_on = true;
	cpu_on = cpu;
	count = 0;
	stack = 0;
}

static void end(unsigned cpu, void *unused)
{
	if (!is_on || cpu != cpu_on)
		return;
	is_on = false;
	operations++;
	for (unsigned i = 0; i < count; i++) {
		int class = class_of(lines[i].line << 6);

		sum[class]++;
		stored[class] += lines[i].is_stored;
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
	}
	fprintf(out, "}\n");
	for (struct site *site = sites; site; site = site->next) {
		if (site->count)
			fprintf(out, "at %u %016llx %llu\n", section - 1, (unsigned long long)site->address,
				(unsigned long long)site->count);
		site->count = 0;
	}
	fflush(out);
	operations = instructions = 0;
	memset(sum, 0, sizeof(sum));
	memset(stored, 0, sizeof(stored));
}

static void executed(unsigned cpu, void *site)
{
	if (!is_on || cpu != cpu_on)
		return;
	instructions++;
	if (site)
		((struct site *)site)->count++;
}

static struct site *new_site(uint64_t address)
{
	struct site *site = calloc(1, sizeof(*site));

	if (site) {
		site->address = address;
		site->next = sites;
		sites = site;
	}
	return site;
}

static void touched(unsigned cpu, qemu_plugin_meminfo_t info, uint64_t address, void *is_call)
{
	uint64_t line = address >> 6;
	bool is_stored = qemu_plugin_mem_is_store(info);
	unsigned i;

	if (!is_on || cpu != cpu_on)
		return;
	/* The first call stores its return address on the stack. */
	if (!stack && is_call && is_stored)
		stack = address;
	for (i = 0; i < count && lines[i].line != line; i++)
		;
	if (i == count && count < MOST_LINES) {
		lines[count].line = line;
		lines[count++].is_stored = false;
	}
	if (i < MOST_LINES)
		lines[i].is_stored |= is_stored;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *block)
{
	for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, i);
		const unsigned char *bytes = qemu_plugin_insn_data(insn);
		size_t size = qemu_plugin_insn_size(insn);
		static char a_call;
		uint32_t mark = 0;

		if (size == 8 && !memcmp(bytes, "\x0f\x1f\x84\x00", 4))
			memcpy(&mark, bytes + 4, 4);
		if (mark == MARK_BEGIN)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, begin, NO_REGISTERS, NULL);
		else if (mark == MARK_END)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, end, NO_REGISTERS, NULL);
		else if (mark == MARK_NEXT)
			qemu_plugin_register_vcpu_insn_exec_cb(insn, next, NO_REGISTERS, NULL);
		else
			qemu_plugin_register_vcpu_insn_exec_cb(insn, executed, NO_REGISTERS,
				has_addresses ? new_site(qemu_plugin_insn_vaddr(insn)) : NULL);
		if (has_lines)
			qemu_plugin_register_vcpu_mem_cb(insn, touched, NO_REGISTERS, LOADS_AND_STORES,
						 bytes[0] == 0xe8 || bytes[0] == 0xff ? &a_call : NULL);
	}
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
	const char *path = argc > 0 && !strncmp(argv[0], "out=", 4) ? argv[0] + 4 : NULL;

	out = path ? fopen(path, "w") : NULL;
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

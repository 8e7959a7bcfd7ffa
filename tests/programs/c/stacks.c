/* A library whose functions call back from places that are hard to unwind. Built without frame
 * pointers. */
#define _GNU_SOURCE
#include "check.h"
#include <alloca.h>
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

typedef void (*callback)(void);

#define APART __attribute__((noinline, noclone))
/* Behind a call, so that it is no tail call. */
#define STAY __asm__ volatile("" ::: "memory")

static callback current;

APART int compare(const void *a, const void *b) {
    current();
    STAY;
    return *(const int *)a - *(const int *)b;
}

APART void through_qsort(callback call) {
    int numbers[] = {3, 1, 2};
    current = call;
    qsort(numbers, 3, sizeof *numbers, compare);
    STAY;
}

APART void through_bsearch(callback call) {
    int numbers[] = {1, 2, 3}, key = 3;
    /* The header has one that the compiler could put here. */
    void *(*volatile search)(const void *, const void *, size_t, size_t, comparison_fn_t) = bsearch;
    current = call;
    CHECK(search(&key, numbers, 3, sizeof *numbers, compare) == numbers + 2);
    STAY;
}

/* Frames of sizes that are known only when they run. */
APART void frames_of_any_size(callback call, int depth) {
    char *memory = alloca((size_t)depth * 5000 + 16);
    memset(memory, depth, 16);
    if (depth == 0)
        call();
    else
        frames_of_any_size(call, depth - 1);
    CHECK(memory[15] == depth);
}

APART void through_frames_of_any_size(callback call) {
    frames_of_any_size(call, 20);
    STAY;
}

/* A stack that is aligned anew. */
APART void through_an_aligned_frame(callback call) {
    _Alignas(256) volatile char buffer[512];
    buffer[0] = 1;
    CHECK((uintptr_t)buffer % 256 == 0);
    call();
    CHECK(buffer[0] == 1);
}

/* A frame of unknown size: the compiler keeps the old stack pointer in memory. */
APART void aligned_frames(callback call, int n) {
    _Alignas(128) volatile char buffer[128];
    volatile char *memory = alloca((size_t)n);
    memory[0] = buffer[0] = 1;
    CHECK((uintptr_t)buffer % 128 == 0);
    call();
    CHECK(buffer[0] == 1 && memory[0] == 1);
}

APART void through_aligned_frames(callback call) {
    aligned_frames(call, 1000);
    STAY;
}

static void handler(int signal) {
    (void)signal;
    current();
    STAY;
}

APART void raise_signal(int flags) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    CHECK(sigaction(SIGUSR1, &action, &old) == 0);
    CHECK(pthread_kill(pthread_self(), SIGUSR1) == 0);
    CHECK(sigaction(SIGUSR1, &old, NULL) == 0);
}

APART void through_a_signal(callback call) {
    current = call;
    raise_signal(0);
    STAY;
}

APART void through_a_signal_stack(callback call) {
    void *memory = mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t stack = {.ss_sp = memory, .ss_size = 64 << 10}, old;
    CHECK(sigaltstack(&stack, &old) == 0);
    current = call;
    raise_signal(SA_ONSTACK);
    CHECK(sigaltstack(&old, NULL) == 0);
    CHECK(munmap(memory, 64 << 10) == 0);
}

/* The interrupted instruction is the first of a function that does not exist. */
static void (*volatile nowhere)(void);
static ucontext_t *volatile lost;

static void find_back(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    lost = context;
    current();
    greg_t *registers = lost->uc_mcontext.gregs;
    /* Returns for it. */
    registers[REG_RIP] = *(greg_t *)registers[REG_RSP];
    registers[REG_RSP] += 8;
}

APART void through_a_null_function(callback call) {
    struct sigaction action = {.sa_sigaction = find_back, .sa_flags = SA_SIGINFO}, old;
    current = call;
    CHECK(sigaction(SIGSEGV, &action, &old) == 0);
    nowhere();
    CHECK(sigaction(SIGSEGV, &old, NULL) == 0);
}

static ucontext_t outside, inside;

static void in_context(void) {
    current();
    STAY;
}

APART void through_a_context(callback call) {
    void *memory = mmap(NULL, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    current = call;
    CHECK(getcontext(&inside) == 0);
    inside.uc_stack.ss_sp = memory;
    inside.uc_stack.ss_size = 64 << 10;
    inside.uc_link = &outside;
    makecontext(&inside, in_context, 0);
    CHECK(swapcontext(&outside, &inside) == 0);
    CHECK(munmap(memory, 64 << 10) == 0);
}

static void *in_thread(void *call) {
    ((callback)call)();
    STAY;
    return NULL;
}

APART void through_a_small_thread(callback call) {
    pthread_attr_t attributes;
    pthread_t thread;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, 256 << 10) == 0);
    CHECK(pthread_create(&thread, &attributes, in_thread, (void *)call) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pthread_attr_destroy(&attributes) == 0);
}

static void *page_of_code(const unsigned char *code, size_t bytes) {
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, bytes);
    CHECK(mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0);
    return page;
}

/* Code that was made at run time, with a frame pointer. */
APART void through_made_code(callback call) {
    /* push rbp; mov rbp, rsp; call rdi; pop rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
    void *page = page_of_code(code, sizeof code);
    ((void (*)(callback))page)(call);
    CHECK(munmap(page, 4096) == 0);
}

/* The same without a frame pointer: a walk must survive whatever is in the register. */
APART void through_bare_code(callback call) {
    /* push rbp; mov rbp, rsi; call rdi; pop rbp; ret */
    static const unsigned char code[] = {0x55, 0x48, 0x89, 0xf5, 0xff, 0xd7, 0x5d, 0xc3};
    void *page = page_of_code(code, sizeof code);
    void *gap = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uintptr_t wrong[] = {0, 1, 8, (uintptr_t)wrong, (uintptr_t)gap, -(uintptr_t)16, -(uintptr_t)1, (uintptr_t)1 << 63,
                         (uintptr_t)page};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ((void (*)(callback, uintptr_t))page)(call, wrong[i]);
    CHECK(munmap(page, 4096) == 0 && munmap(gap, 8192) == 0);
}

/* The main program's stack, far down. */
APART void far_down(callback call, int depth) {
    volatile char room[4000];
    room[0] = 1;
    if (depth == 0)
        call();
    else
        far_down(call, depth - 1);
    CHECK(room[0] == 1);
}

APART void through_a_deep_stack(callback call) {
    far_down(call, 200);
    STAY;
}

/* One instruction after another: the handler is called before each. */
typedef void (*instruction)(uintptr_t pc, uintptr_t sp, uintptr_t bp, uintptr_t bx);
static instruction each;

static void trapped(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *r = ((ucontext_t *)context)->uc_mcontext.gregs;
    each((uintptr_t)r[REG_RIP], (uintptr_t)r[REG_RSP], (uintptr_t)r[REG_RBP], (uintptr_t)r[REG_RBX]);
}

APART void stepped(void) {
    int numbers[] = {3, 1, 2};
    volatile char *memory = alloca(strnlen("some text", 20) * 16);
    memory[0] = 1;
    qsort(numbers, 3, sizeof *numbers, compare);
    CHECK(memory[0] == 1);
}

static void nothing(void) {}

/* With a frame pointer, since the assembly moves the stack pointer. */
__attribute__((optimize("no-omit-frame-pointer"))) APART void through_each_instruction(instruction call) {
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO}, old;
    each = call;
    current = nothing;
    CHECK(sigaction(SIGTRAP, &action, &old) == 0);
    __asm__ volatile("sub $128, %%rsp\n pushf\n orl $0x100, (%%rsp)\n popf\n add $128, %%rsp" ::: "memory", "cc");
    stepped();
    __asm__ volatile("sub $128, %%rsp\n pushf\n andl $~0x100, (%%rsp)\n popf\n add $128, %%rsp" ::: "memory", "cc");
    CHECK(sigaction(SIGTRAP, &old, NULL) == 0);
}

/* Shared by the faulty programs. Each case prints the address of its buffer, and then misuses it.
 * Reports must show the functions' names on their stacks. */
#ifndef FAULTY_H
#define FAULTY_H

#define _GNU_SOURCE
#include "../check.h"
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>

#define APART __attribute__((noinline, noclone))
/* Behind a call, so that it is no tail call. */
#define STAY __asm__ volatile("" ::: "memory")

/* Prints the misused buffer for the test to compare. */
static inline void *show(void *p) {
    printf("%p\n", p);
    fflush(stdout);
    return p;
}

/* A pointer of which the compiler knows nothing. */
static inline void *unknown(const void *p) {
    __asm__ volatile("" : "+r"(p) : : "memory");
    return (void *)(uintptr_t)p;
}

APART void *make_buffer(size_t size) {
    void *p = malloc(size);
    STAY;
    return show(p);
}

APART void *make_aligned(size_t align, size_t size) {
    void *p = NULL;
    CHECK(posix_memalign(&p, align, size) == 0);
    return show(p);
}

APART void *make_cleared(size_t size) {
    void *p = calloc(size, 1);
    STAY;
    return show(p);
}

APART void give_up(void *p) {
    free(p);
    STAY;
}

APART void write_byte(void *buffer, ptrdiff_t offset) {
    ((volatile char *)buffer)[offset] = 'A';
    STAY;
}

APART char read_byte(void *buffer, ptrdiff_t offset) {
    char byte = ((volatile char *)buffer)[offset];
    STAY;
    return byte;
}

/* Runs a function in a thread, to its end. */
APART void elsewhere(void *(*run)(void *), void *argument) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, argument) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static inline void *makes_elsewhere(void *size) {
    return *(void **)size = make_buffer(*(size_t *)size);
}

static inline void *gives_up_elsewhere(void *p) {
    give_up(p);
    return NULL;
}

/* The byte behind the 100 that threads' buffers have here. */
static inline void *writes_past_elsewhere(void *p) {
    write_byte(p, 100);
    return NULL;
}

static inline void *writes_elsewhere(void *p) {
    write_byte(p, 5);
    return NULL;
}

/* Runs a function in a child, which then exits; returns the signal that ended it, or 0. */
APART int in_child(void (*run)(void *), void *argument) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (run)
            run(argument);
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* Dereferenced: an uninitialized pointer, or one in freed memory, leads nowhere. */
struct node {
    long number;
    struct node *next;
};

APART long next_number(struct node *node) {
    long number = node->next->number;
    STAY;
    return number;
}

/* Calls the function that an object begins with, in one instruction that reads it and jumps. */
APART void call_through(void *object) {
    __asm__ volatile("call *(%0)" : : "a"(object) : "memory");
    STAY;
}

static inline void *reads_elsewhere(void *node) { return (void *)next_number(node); }

/* Many others come and go. */
APART void others_come_and_go(int n, size_t size) {
    for (int i = 0; i < n; i++)
        free(malloc(size + (size_t)i % 64));
}

#define CASE(name) APART void name(void)

#endif

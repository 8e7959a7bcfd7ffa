/* Common parts of the Linux guest's first program. */
#ifndef GUEST_H
#define GUEST_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE 4096ul
#define HUGE (2ul << 20)
#define MIB (1ul << 20)

/* A line of the guest's output. */
__attribute__((format(printf, 1, 2))) void say(const char *format, ...);

/* The last line, with the reason; ends the guest. */
__attribute__((noreturn, format(printf, 1, 2))) void fail(const char *format, ...);

/* A number of a file of lines `NAME NUMBER`, times `unit`; -1: no such file or line. */
long number_in(const char *path, const char *name, long unit);

/* 0, or errno. */
int write_to(const char *path, const char *text);

/* After the page cache was dropped. */
long free_bytes(void);

/* Nanoseconds; with counted instructions, instructions. */
uint64_t now(void);

/* memcached.c: the paper's figure 11. */
void load_memcached(int turns);

#endif

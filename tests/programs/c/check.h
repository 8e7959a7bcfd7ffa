/* Shared by the tests' programs: checks, and a table of parts for the first argument. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                                          \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__, __LINE__, #condition, errno);             \
            _exit(1);                                                                                             \
        }                                                                                                         \
    } while (0)

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

/* A part of the rounds, or all of them with CRATON_FULL=1. */
static inline int rounds(int part, int all) { return getenv("CRATON_FULL") ? all : part; }

struct part {
    const char *name;
    void (*run)(void);
};

/* Runs the part named by the first argument. Allocates one small object first, so that every part's
 * numbers show whether Craton served it. */
static inline int run_part(int argc, char **argv, const struct part *parts) {
    free(malloc(100));
    for (; argc > 1 && parts->name; parts++) {
        if (strcmp(argv[1], parts->name) == 0) {
            parts->run();
            return 0;
        }
    }
    fprintf(stderr, "no such part: %s\n", argc > 1 ? argv[1] : "(none)");
    return 2;
}

/* The beginning of a file of /proc, as a string in `text`. Allocates nothing. */
static inline void read_proc(const char *path, char *text, size_t size) {
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    CHECK(n > 0);
    close(fd);
    text[n] = 0;
}

/* A field of /proc/self/statm, in KiB: 0 is the address space, 1 the resident memory. Does not
 * allocate. */
static inline size_t statm_kib(int field) {
    char text[256];
    read_proc("/proc/self/statm", text, sizeof text);
    char *at = text;
    while (field-- > 0)
        at = strchr(at, ' ') + 1;
    return strtoul(at, NULL, 10) * (size_t)(sysconf(_SC_PAGESIZE) / 1024);
}

static inline size_t rss_kib(void) { return statm_kib(1); }

/* Marks `size` bytes to detect moved or changed bytes: all of a small object; of a large one its
 * two ends, and a word in each 4 KiB. */
static inline unsigned char mark_at(size_t i, unsigned seed) { return (unsigned char)(i * 31 + (i >> 8) * 7 + seed); }

static inline size_t next_mark(size_t i, size_t size) {
    return (size <= 256 * KIB || i < 8 * KIB || i + 8 * KIB >= size || i % 4096 < 7) ? i + 1 : i / 4096 * 4096 + 4096;
}

static inline void mark(void *object, size_t size, unsigned seed) {
    unsigned char *p = (unsigned char *)object;
    for (size_t i = 0; i < size; i = next_mark(i, size))
        p[i] = mark_at(i, seed);
}

/* Whether the first `upto` bytes are unchanged since `mark` of an object of `size` bytes. */
static inline int is_marked(const void *object, size_t size, unsigned seed, size_t upto) {
    const unsigned char *p = (const unsigned char *)object;
    for (size_t i = 0; i < size && i < upto; i = next_mark(i, size))
        if (p[i] != mark_at(i, seed))
            return 0;
    return 1;
}

static inline int is_zero(const void *object, size_t size) {
    const unsigned char *p = (const unsigned char *)object;
    return size == 0 || (p[0] == 0 && memcmp(p, p + 1, size - 1) == 0);
}

#endif

/* A program that runs out of memory, by a limit from outside or set here. The first argument names
 * the part. */
#define _GNU_SOURCE
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* Objects in a list through themselves: there is no memory for another one. */
struct object {
    struct object *next;
    size_t size;
};

static struct object *add(struct object *list, size_t size) {
    errno = 0;
    struct object *new = malloc(size);
    if (!new) {
        CHECK(errno == ENOMEM);
        return NULL;
    }
    *new = (struct object){list, size};
    ((char *)new)[size - 1] |= 0;
    return new;
}

/* Allocates until refusal, or `most` bytes. Returns the bytes, and the list in *list. */
static size_t exhaust(struct object **list, size_t size, size_t most) {
    size_t bytes = 0;
    *list = NULL;
    for (struct object *new; bytes < most && (new = add(*list, size)); bytes += size)
        *list = new;
    return bytes;
}

/* POSIX: free leaves errno alone, also when the system refuses what it asks. */
static void release(void *object) {
    errno = 99;
    free(object);
    CHECK(errno == 99);
}

static struct object *free_every_other(struct object *list) {
    for (struct object *at = list; at && at->next;) {
        struct object *gone = at->next;
        CHECK(gone->size == list->size);
        at->next = gone->next;
        at = gone->next;
        release(gone);
    }
    return list;
}

static void free_all(struct object *list) {
    while (list) {
        struct object *next = list->next;
        release(list);
        list = next;
    }
}

/* To the end, half freed, to the end again, all freed, and once more. */
static void to_the_end(size_t size, size_t most, size_t least) {
    struct object *list, *more;
    size_t first = exhaust(&list, size, most);
    fprintf(stderr, "%zu bytes in objects of %zu\n", first, size);
    CHECK(first >= least);
    if (list) {
        /* A refusal changes nothing. */
        void *same = realloc(list, PTRDIFF_MAX / 2);
        CHECK(same == NULL && errno == ENOMEM && list->size == size);
        list = free_every_other(list);
        size_t second = exhaust(&more, size, most / 2);
        CHECK(second + 4 * size >= first / 2 || second >= most / 2);
        free_all(more);
    }
    free_all(list);
    size_t third = exhaust(&list, size, most);
    CHECK(third + third / 8 + 4 * size >= first);
    free_all(list);
}

static size_t least;

static void small_to_null(void) {
    to_the_end(100, SIZE_MAX, least);
    to_the_end(5000, SIZE_MAX, least);
}

static void large_to_null(void) {
    to_the_end(300000, SIZE_MAX, least);
    to_the_end(5 * MIB, SIZE_MAX, least);
    to_the_end(40 * MIB, SIZE_MAX, 0);
    to_the_end(300000, SIZE_MAX, least);
}

/* All sizes at the same time, then all freed, so that one kind's memory serves the next. */
static void mixed_to_null(void) {
    unsigned state = 1;
    for (int round = 0; round < 3; round++) {
        struct object *list = NULL, *new;
        int refused = 0;
        while (refused < 20) {
            state = state * 1664525u + 1013904223u;
            unsigned r = state >> 8;
            new = add(list, r % 500 == 0 ? r % (8 * MIB) + 16 : r % 20 == 0 ? r % 300000 + 16 : r % 2000 + 16);
            list = new ? new : list;
            refused += !new;
        }
        CHECK(calloc(1, 512 * MIB) == NULL || least > 256 * MIB);
        free_all(list);
        void *p = malloc(least / 2);
        CHECK(p);
        free(p);
    }
}

static void lower(int resource, size_t by_now_kib) {
    struct rlimit limit;
    CHECK(getrlimit(resource, &limit) == 0);
    limit.rlim_cur = by_now_kib * KIB + 8 * MIB;
    CHECK(setrlimit(resource, &limit) == 0);
}

/* The heap is in use when the limit comes. Reserved address space may still be used, so the end may
 * be far. */
static void address_space_lowered(void) {
    struct object *before;
    CHECK(exhaust(&before, 1000, 50 * MIB) >= 50 * MIB);
    lower(RLIMIT_AS, statm_kib(0));
    to_the_end(100, 128 * MIB, 0);
    to_the_end(300000, 256 * MIB, 0);
    to_the_end(64 * MIB, 1024 * MIB, 0);
    free_all(before);
    CHECK(exhaust(&before, 1000, 40 * MIB) >= 40 * MIB);
    free_all(before);
}

static void data_lowered(void) {
    struct object *before;
    size_t data = statm_kib(5);
    CHECK(exhaust(&before, 1000, 50 * MIB) >= 50 * MIB);
    lower(RLIMIT_DATA, data > statm_kib(5) ? data : statm_kib(5));
    to_the_end(100, GIB, 0);
    to_the_end(300000, GIB, 0);
    to_the_end(64 * MIB, GIB, 0);
    free_all(before);
    CHECK(exhaust(&before, 1000, 40 * MIB) >= 40 * MIB);
    free_all(before);
}

/* From now on the system refuses one call with ENOMEM. */
static void refuse(unsigned number) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void go_on(void) {
    to_the_end(100, 64 * MIB, 0);
    to_the_end(300000, 256 * MIB, 0);
    to_the_end(5 * MIB, 512 * MIB, 0);
    to_the_end(64 * MIB, 1024 * MIB, 0);
    void *p = realloc(malloc(100), 10000);
    CHECK(p);
    free(p);
}

static void mmap_refused(void) {
    refuse(SYS_mmap);
    CHECK(mmap(NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == ENOMEM);
    go_on();
}

static void mprotect_refused(void) {
    free(malloc(20 * MIB));
    refuse(SYS_mprotect);
    go_on();
}

static void mremap_refused(void) {
    refuse(SYS_mremap);
    unsigned char *p = malloc(40 * MIB);
    CHECK(p);
    mark(p, 40 * MIB, 3);
    p = realloc(p, 100 * MIB);
    CHECK(p && is_marked(p, 40 * MIB, 3, 40 * MIB));
    p = realloc(p, 35 * MIB);
    CHECK(p && is_marked(p, 40 * MIB, 3, 35 * MIB));
    free(p);
    go_on();
}

/* Memory can then not be given back; it must still be right. */
static void madvise_refused(void) {
    refuse(SYS_madvise);
    go_on();
    for (int i = 0; i < 5; i++) {
        void *p = malloc(8 * MIB);
        memset(p, 0xff, 8 * MIB);
        free(p);
        p = calloc(1, 8 * MIB);
        CHECK(p && is_zero(p, 8 * MIB));
        free(p);
    }
}

static void munmap_refused(void) {
    refuse(SYS_munmap);
    to_the_end(100, 64 * MIB, 0);
    for (int i = 0; i < 5; i++)
        free(malloc(64 * MIB));
}

static void all_refused(void) {
    struct object *before;
    CHECK(exhaust(&before, 1000, 10 * MIB) >= 10 * MIB);
    refuse(SYS_mmap);
    refuse(SYS_mprotect);
    refuse(SYS_mremap);
    refuse(SYS_madvise);
    go_on();
    free_all(before);
    go_on();
}

static const struct part PARTS[] = {
    {"small_to_null", small_to_null},
    {"large_to_null", large_to_null},
    {"mixed_to_null", mixed_to_null},
    {"address_space_lowered", address_space_lowered},
    {"data_lowered", data_lowered},
    {"mmap_refused", mmap_refused},
    {"mprotect_refused", mprotect_refused},
    {"mremap_refused", mremap_refused},
    {"madvise_refused", madvise_refused},
    {"munmap_refused", munmap_refused},
    {"all_refused", all_refused},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    if (argc > 2)
        least = strtoul(argv[2], NULL, 10) * MIB;
    return run_part(argc, argv, PARTS);
}

/* Many sizes on a system that refuses an advice or a query about memory, lies, or is slow.
 * Arguments: part, and for `refused` the call and its error. The program's mincore and madvise
 * precede the C library's. */
#define _GNU_SOURCE
#include "check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const char *what, *error;
static volatile int lie = -1;

int mincore(void *at, size_t length, unsigned char *pages) {
    if (lie < 0)
        return (int)syscall(SYS_mincore, at, length, pages);
    memset(pages, lie, (length + 4095) / 4096);
    return 0;
}

static volatile int is_slow, prepared;

static long long processor_ns(void) {
    struct timespec t;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Counts the preparation of memory for growth. A system with fragmented memory moves pages for a
 * hugepage. */
int madvise(void *at, size_t length, int advice) {
    int populates = advice == 23, collapses = advice == 25;
    prepared += populates;
    if (is_slow && (populates || collapses))
        for (long long end = processor_ns() + 12 * 1000 * 1000; processor_ns() < end;)
            ;
    return (int)syscall(SYS_madvise, at, length, advice);
}

static unsigned named(const char *name) {
    static const struct {
        const char *name;
        unsigned value;
    } names[] = {{"huge", 14},   {"small", 15},      {"collapse", 25},   {"dontneed", 4},      {"populate", 23},
                 {"EINVAL", EINVAL}, {"ENOMEM", ENOMEM}, {"EAGAIN", EAGAIN},   {"EPERM", EPERM}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].value;
    fprintf(stderr, "no such name: %s\n", name);
    exit(2);
}

/* From now on the system refuses one advice, or every mincore, or PAGEMAP_SCAN, in all threads. */
static void refuse(void) {
    int scan = strcmp(what, "scan") == 0, core = strcmp(what, "mincore") == 0;
    unsigned number = core ? SYS_mincore : scan ? SYS_ioctl : SYS_madvise;
    unsigned arg = scan || core ? 1 : 2;
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args) + arg * 8),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, scan || core ? 0xc0606610 : named(what), 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | named(error)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    if (core) /* whatever is asked */
        filter[3] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0);
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
    char *probe = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(probe != MAP_FAILED);
    if (!scan) {
        unsigned char pages[512];
        errno = 0;
        long result = core ? mincore(probe, 2 * MIB, pages) : madvise(probe, 2 * MIB, (int)named(what));
        CHECK(result != 0 && errno == (int)named(error));
    }
    munmap(probe, 2 * MIB);
}

static unsigned next(unsigned *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

enum { SLOTS = 300 };

struct slot {
    char *object;
    size_t size;
    unsigned seed;
};

/* Mostly small, some of hundreds of KiB and a few of many MiB. */
static size_t some_size(unsigned *state) {
    unsigned kind = next(state) % 300, r = next(state);
    return kind == 0 ? 30 * MIB + r % (8 * MIB) : kind < 6 ? r % (4 * MIB) + 1 : kind < 60 ? r % (300 * KIB) + 1 : r % 2000 + 1;
}

static void change(struct slot *slot, unsigned *state) {
    size_t size = some_size(state);
    unsigned seed = next(state);
    if (slot->object)
        CHECK(is_marked(slot->object, slot->size, slot->seed, slot->size));
    if (slot->object && seed % 3 == 0) {
        slot->object = realloc(slot->object, size);
        CHECK(slot->object && is_marked(slot->object, slot->size, slot->seed, size < slot->size ? size : slot->size));
    } else {
        free(slot->object);
        slot->object = seed % 2 ? calloc(1, size) : malloc(size);
        CHECK(slot->object && (seed % 2 == 0 || is_zero(slot->object, size)));
    }
    slot->size = size;
    slot->seed = seed;
    mark(slot->object, size, seed);
}

/* Dense and sparse in turns; everything is freed sometimes, so that much is released. */
static void *churn(void *seed) {
    struct slot *slots = calloc(SLOTS, sizeof *slots);
    CHECK(slots);
    unsigned state = (unsigned)(uintptr_t)seed;
    int turn = rounds(500, 1500);
    for (int i = 0; i < 2 * turn; i++) {
        change(&slots[next(&state) % SLOTS], &state);
        if (i % turn == turn - 1) {
            for (int j = 0; j < SLOTS; j++) {
                CHECK(!slots[j].object || is_marked(slots[j].object, slots[j].size, slots[j].seed, slots[j].size));
                free(slots[j].object);
                slots[j].object = NULL;
            }
            usleep(100000); /* six seconds of the library's clock, if it has the fast one */
        }
    }
    free(slots);
    return NULL;
}

/* Threads, and a child that goes on alone. */
static void work(void) {
    pthread_t other;
    CHECK(pthread_create(&other, NULL, churn, (void *)7) == 0);
    churn((void *)1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        churn((void *)3);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(pthread_join(other, NULL) == 0);
}

static void sparse(size_t most_kib) {
    static char *objects[1000];
    size_t before = rss_kib();
    for (int i = 0; i < 1000; i++) {
        CHECK((objects[i] = malloc(256 * KIB)));
        objects[i][0] = (char)i;
    }
    size_t grown = rss_kib() - before;
    fprintf(stderr, "%zu KiB for 1000 objects of which a byte is touched\n", grown);
    CHECK(grown <= most_kib);
    for (int i = 0; i < 1000; i++) {
        CHECK(objects[i][0] == (char)i);
        free(objects[i]);
    }
}

/* At most twice the touched memory, or, without the advice for small pages, the allocated memory.
 */
static void refused(void) {
    refuse();
    sparse(strcmp(what, "small") == 0 ? 290 * 1024 : 14 * 1024);
    work();
}

static void refused_later(void) {
    churn((void *)5);
    refuse();
    work();
}

static void all_resident(void) {
    lie = 1;
    sparse(290 * 1024);
    work();
}

static void nothing_resident(void) {
    lie = 0;
    sparse(14 * 1024);
    work();
}

static void *sleep_on(void *unused) {
    for (;;)
        pause();
    return unused;
}

/* A program with threads grows by `mib` MiB in objects of 1000 bytes, with a pause every 2 MiB. */
static void grow(int mib, int pause_ms) {
    for (int i = 0; i < mib; i += 2) {
        for (int j = 0; j < 2097; j++) {
            char *object = malloc(1000);
            CHECK(object);
            mark(object, 1000, (unsigned)j);
        }
        usleep((unsigned)pause_ms * 1000);
    }
}

static void grow_slowly(void) {
    pthread_t other;
    CHECK(pthread_create(&other, NULL, sleep_on, NULL) == 0);
    grow(80, 0);
    grow(150, 20);
    printf("%d\n", prepared);
}

static void quick(void) { grow_slowly(); }

static void slow(void) {
    is_slow = 1;
    grow_slowly();
}

int main(int argc, char **argv) {
    if (argc > 3) {
        what = argv[2];
        error = argv[3];
    }
    static const struct part parts[] = {{"refused", refused},
                                        {"refused_later", refused_later},
                                        {"all_resident", all_resident},
                                        {"nothing_resident", nothing_resident},
                                        {"quick", quick},
                                        {"slow", slow},
                                        {NULL, NULL}};
    return run_part(argc, argv, parts);
}

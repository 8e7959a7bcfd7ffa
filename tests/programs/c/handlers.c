/* Signal handlers that allocate by mistake. The library's slow path calls `mprotect` and `madvise`
 * with locks held: the versions here raise a signal first, so that a handler runs exactly there. */
#define _GNU_SOURCE
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static _Thread_local volatile sig_atomic_t armed;
static volatile sig_atomic_t handled;

static void interrupt(void) {
    if (armed) {
        armed = 0;
        raise(SIGUSR1);
    }
}

int mprotect(void *at, size_t size, int access) {
    interrupt();
    return (int)syscall(SYS_mprotect, at, size, access);
}

int madvise(void *at, size_t size, int advice) {
    interrupt();
    return (int)syscall(SYS_madvise, at, size, advice);
}

static void on_signal(void (*f)(int)) {
    struct sigaction action = {0};
    action.sa_handler = f;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
}

/* Makes the heap grow, and a signal come while it does. */
static void grow_interrupted(void) {
    handled = 0;
    for (int tries = 0; !handled && tries < 64; tries++) {
        armed = 1;
        void *p = malloc(3 * MIB);
        CHECK(p);
        mark(p, 3 * MIB, (unsigned)tries);
        CHECK(is_marked(p, 3 * MIB, (unsigned)tries, 3 * MIB));
    }
    CHECK(handled);
}

enum { OBJECTS = 60 };
static struct { void *p; size_t size; } mine[OBJECTS], old[OBJECTS];

static void allocate_in_handler(int signal) {
    (void)signal;
    for (int i = 0; i < OBJECTS; i++) {
        size_t size = (size_t)i * i * 3 + 1;
        void *p = i % 4 == 0 ? calloc(1, size) : i % 4 == 1 ? aligned_alloc(256, size) : malloc(size);
        CHECK(p && malloc_usable_size(p) >= size);
        CHECK(i % 4 != 0 || is_zero(p, size));
        CHECK(i % 4 != 1 || (uintptr_t)p % 256 == 0);
        if (i % 4 == 2) {
            memset(p, i, size);
            CHECK((p = realloc(p, size + 700)));
            for (size_t j = 0; j < size; j++)
                CHECK(((unsigned char *)p)[j] == i);
            size += 700;
        }
        mark(p, size, (unsigned)i);
        mine[i].p = p;
        mine[i].size = size;
        CHECK(is_marked(old[i].p, old[i].size, (unsigned)i, old[i].size));
        if (i % 3 == 0)
            CHECK((old[i].p = realloc(old[i].p, old[i].size * 2)));
        else
            free(old[i].p);
    }
    void *huge = malloc(64 * MIB); /* more than there is apart */
    CHECK(huge == NULL && errno == ENOMEM);
    CHECK(malloc_trim(0) == 0);
    handled = 1;
}

static void allocate(void) {
    on_signal(allocate_in_handler);
    for (int i = 0; i < OBJECTS; i++) {
        old[i].size = (size_t)(OBJECTS - i) * 401;
        CHECK((old[i].p = malloc(old[i].size)));
        mark(old[i].p, old[i].size, (unsigned)i);
    }
    grow_interrupted();
    /* Afterwards everything works, and objects from the handler are ordinary ones. */
    for (int i = 0; i < OBJECTS; i++) {
        CHECK(is_marked(mine[i].p, mine[i].size, (unsigned)i, mine[i].size));
        if (i % 2)
            CHECK((mine[i].p = realloc(mine[i].p, mine[i].size * 2)));
        CHECK(is_marked(mine[i].p, mine[i].size, (unsigned)i, mine[i].size));
        free(mine[i].p);
        if (i % 3 == 0) {
            CHECK(is_marked(old[i].p, old[i].size, (unsigned)i, old[i].size));
            free(old[i].p);
        }
    }
    for (int i = 1; i < 3000; i++) {
        void *p = malloc((size_t)i * 7);
        CHECK(p);
        mark(p, (size_t)i * 7, (unsigned)i);
        free(p);
    }
}

static void *allocate_in(void *arg) {
    allocate();
    return arg;
}

/* A thread, which per-CPU caches serve if there are any. */
static void allocate_in_thread(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocate_in, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void fork_in_handler(int signal) {
    (void)signal;
    pid_t child = fork();
    CHECK(child >= 0);
    handled = 1;
    if (child != 0) {
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    }
    else
        handled = 2;
}

/* Parent and child both return from the handler, and continue the interrupted request. */
static void forks(void) {
    on_signal(fork_in_handler);
    grow_interrupted();
    for (int i = 1; i < 3000; i++) {
        void *p = malloc((size_t)i * 97);
        CHECK(p);
        free(p);
    }
    if (handled == 2)
        _exit(9);
    on_signal(allocate_in_handler);
}

static atomic_int stop;

static void *allocate_until_stopped(void *arg) {
    for (size_t i = 1; !atomic_load(&stop); i++) {
        void *p = malloc(i % 300 * 100);
        void *q = malloc(MIB + i % 3 * MIB);
        CHECK(p && q);
        free(p);
        free(q);
    }
    return arg;
}

/* The same while other threads hold locks and wait for the interrupted one's. */
static void forks_among_threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, allocate_until_stopped, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        on_signal(fork_in_handler);
        handled = 0;
        for (int tries = 0; !handled && tries < 100; tries++) {
            armed = 1;
            CHECK(malloc(20 * MIB)); /* more than the other threads leave free */
        }
        CHECK(handled);
        if (handled == 2)
            _exit(9);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void print_statistics_in_handler(int signal) {
    (void)signal;
    handled = 1;
    CHECK(mallinfo2().uordblks > 0);
}

/* A call that cannot be served in a handler ends the process, with a line. */
static void statistics(void) {
    on_signal(print_statistics_in_handler);
    grow_interrupted();
}

static void exit_in_handler(int signal) {
    (void)signal;
    exit(0);
}

static void exits(void) {
    on_signal(exit_in_handler);
    grow_interrupted();
    CHECK(!"the handler ended the process");
}

/* A signal after each instruction of one call; after the `at`-th the handler acts. */
static volatile sig_atomic_t steps, at;
static void *volatile in_handler;
static void *volatile for_handler;
static int frees_in_handler;
static volatile int also_free;

static void on_step(int signal) {
    (void)signal;
    if (++steps != at)
        return;
    if (for_handler)
        free(for_handler);
    else
        in_handler = malloc(48);
    if (also_free) {
        free(in_handler);
        in_handler = NULL;
    }
}

static inline void stepping(int on) {
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\torq %0, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp"
                     : : "r"(on ? 0x100ul : 0ul) : "memory", "cc");
}

static int by_address(const void *a, const void *b) {
    uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return x < y ? -1 : x > y;
}

enum { MALLOC, FREE, MOST_STEPS = 4000 };

/* Interrupts one call after its `at`-th instruction, and allocates enough objects to refill the
 * thread's list. Exits with 0 when all objects are distinct, 3 when two are one, and 4 when the
 * call had ended before. */
static void interrupted_call(int call) {
    static void *all[600];
    int n = 0;
    void *first[24];
    for (int i = 0; i < 24; i++)
        first[i] = malloc(48);
    for_handler = frees_in_handler ? first[1] : NULL;
    for (int i = 2; i < 12; i++)
        free(first[i]);
    stepping(1);
    if (call == MALLOC)
        all[n++] = malloc(48);
    else
        free(first[0]);
    stepping(0);
    if (steps < at)
        _exit(4);
    if (in_handler)
        all[n++] = in_handler;
    while (n < 600)
        all[n++] = malloc(48);
    qsort(all, 600, sizeof *all, by_address);
    for (int i = 1; i < 600; i++)
        if (all[i] == all[i - 1])
            _exit(3);
    _exit(0);
}

/* Each instruction in turn, in a separate process. Allowed results: no error, a report, or a crash.
 */
static void each_step(int call, int frees, int balanced) {
    struct sigaction action = {0};
    action.sa_handler = on_step;
    action.sa_flags = SA_NODEFER;
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
    int well = 0, told = 0, crashed = 0;
    for (at = 1; at < MOST_STEPS; at++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            steps = 0;
            also_free = balanced;
            frees_in_handler = frees;
            interrupted_call(call);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == 4)
            break;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT)
            told++;
        else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV)
            crashed++;
        else if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            well++;
        else {
            fprintf(stderr, "after instruction %d of %s: status %#x\n", (int)at, call == MALLOC ? "malloc" : "free", status);
            exit(1);
        }
    }
    CHECK(at > 10 && at < MOST_STEPS && well > 10);
    /* A handler that frees what it has allocated does no harm. */
    CHECK(!balanced || (told == 0 && crashed == 0));
    printf("%d well, %d told, %d crashed\n", well, told, crashed);
}

static void each_step_mallocs(void) {
    each_step(MALLOC, 0, 0);
    each_step(FREE, 0, 0);
}

static void each_step_frees(void) {
    each_step(MALLOC, 1, 0);
    each_step(FREE, 1, 0);
}

static void each_step_does_both(void) {
    each_step(MALLOC, 0, 1);
    each_step(FREE, 0, 1);
}

static void *kept[2][64];

static void churn(int who, unsigned *state, int objects) {
    static const size_t SIZES[] = {16, 48, 100, 1000, 20000, 300000};
    for (int i = 0; i < objects; i++) {
        *state = *state * 1664525u + 1013904223u;
        void **place = &kept[who][(*state >> 10) % 64];
        free(*place);
        *place = malloc(SIZES[(*state >> 20) % 6]);
    }
}

static void churn_in_handler(int signal) {
    static unsigned state = 9;
    (void)signal;
    churn(0, &state, 20);
}

static atomic_int quiet;

static void *send(void *target) {
    while (!atomic_load(&quiet)) {
        CHECK(pthread_kill(*(pthread_t *)target, SIGUSR1) == 0);
        for (volatile int i = 0; i < 300; i++)
            continue;
    }
    return NULL;
}

/* Signals arrive as fast as another thread can send them, and each handler allocates and keeps. */
static void *storm(void *arg) {
    struct timespec start, now;
    unsigned state = 7;
    pthread_t self = pthread_self(), sender;
    on_signal(churn_in_handler);
    CHECK(pthread_create(&sender, NULL, send, &self) == 0);
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        churn(1, &state, 1000);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1000000 < 700);
    atomic_store(&quiet, 1);
    CHECK(pthread_join(sender, NULL) == 0);
    return arg;
}

static void storm_in_main(void) { storm(NULL); }

static void storm_in_thread(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, storm, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(int argc, char **argv) {
    static const struct part parts[] = {
        {"allocate", allocate}, {"allocate_in_thread", allocate_in_thread}, {"forks", forks}, {"forks_among_threads", forks_among_threads},
        {"statistics", statistics}, {"exits", exits},
        {"each_step_mallocs", each_step_mallocs}, {"each_step_frees", each_step_frees}, {"each_step_does_both", each_step_does_both},
        {"storm_in_main", storm_in_main}, {"storm_in_thread", storm_in_thread}, {0},
    };
    struct rlimit no_core = {0};
    CHECK(setrlimit(RLIMIT_CORE, &no_core) == 0);
    return run_part(argc, argv, parts);
}

/* Calls that need a program without threads, and one with some: the library's thread must not
 * disturb them. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { SIZE = 4000, MOST = 100000, KEEP_ONE_IN = 64 };
/* The heap keeps recently used memory for 5 s; the rest is for a busy machine. */
enum { PATIENCE_S = 1200 };

static char *objects[MOST];

/* Threads of this process. Allocates nothing. */
static int threads(void) {
    char text[4096];
    read_proc("/proc/self/status", text, sizeof text);
    char *at = strstr(text, "Threads:");
    CHECK(at);
    return atoi(at + 8);
}

static void nap_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static size_t fill(size_t bytes) {
    size_t n = bytes / SIZE;
    CHECK(n <= MOST);
    for (size_t i = 0; i < n; i++) {
        CHECK((objects[i] = malloc(SIZE)));
        memset(objects[i], 1, SIZE);
    }
    return n;
}

static void leave_holes(size_t n) {
    for (size_t i = 0; i < n; i++)
        if (i % KEEP_ONE_IN) {
            free(objects[i]);
            objects[i] = NULL;
        }
}

/* Allocates a little, as a program does that goes on. */
static void go_on(void) {
    void *p[64];
    for (int i = 0; i < 64; i++)
        CHECK((p[i] = malloc(30 * KIB)));
    for (int i = 0; i < 64; i++)
        free(p[i]);
}

static void until_threads(int n, int goes_on) {
    for (double end = now_s() + PATIENCE_S; threads() != n; nap_ms(10)) {
        CHECK(now_s() < end);
        if (goes_on)
            go_on();
    }
}

/* Holds enough free memory for the library to start its thread. */
static void with_thread(void) {
    leave_holes(fill(64 * MIB));
    until_threads(2, 1);
}

static void main_exits(void) {
    with_thread();
    pthread_exit(NULL);
}

static void *grow_later(void *arg) {
    nap_ms(100);
    leave_holes(fill(64 * MIB));
    for (int i = 0; i < 15; i++, nap_ms(100))
        go_on();
    return arg;
}

static void main_exits_first(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, grow_later, NULL) == 0 && pthread_detach(thread) == 0);
    pthread_exit(NULL);
}

/* Prints "refused" where the system refuses, with any allocator. */
static void namespaces(void) {
    leave_holes(fill(64 * MIB));
    if (getenv("LD_PRELOAD"))
        until_threads(2, 1);
    errno = 12345;
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
        printf("refused: %s\n", strerror(errno));
        return;
    }
    CHECK(errno == 12345);
    if (getenv("LD_PRELOAD"))
        until_threads(2, 1);
    int fd = open("/proc/self/ns/mnt", O_RDONLY);
    CHECK(fd >= 0 && setns(fd, CLONE_NEWNS) == 0);
    CHECK(setns(-1, 0) == -1 && errno == EBADF);
    CHECK(unshare(-1) == -1 && errno == EINVAL);
    printf("allowed\n");
}

#define LET(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* The system calls that a program without threads needs to allocate, write and end. */
static void filter(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        LET(read), LET(write), LET(exit_group), LET(brk), LET(mmap), LET(munmap), LET(mremap), LET(mprotect), LET(madvise),
        LET(clock_gettime),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    /* The kernel counts a thread a little longer than a join waits for it. */
    until_threads(1, 0);
    CHECK(syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0);
}

/* Longer than the library's interval between checks, with a heap that grows and shrinks. */
static void work_filtered(void) {
    for (double end = now_s() + 2.5; now_s() < end;) {
        leave_holes(fill(96 * MIB));
        go_on();
    }
    static const char done[] = "survived\n";
    CHECK(write(1, done, sizeof done - 1) == sizeof done - 1);
    _exit(0);
}

static void filtered(void) {
    filter();
    work_filtered();
}

static void filtered_with_thread(void) {
    with_thread();
    filter();
    work_filtered();
}

static void busy(void) {
    size_t n = fill(100 * MIB);
    unsigned seed = 1;
    double last = now_s();
    for (double end = last + 3.5; last < end;) {
        for (int i = 0; i < 20000; i++) {
            seed = seed * 1664525u + 1013904223u;
            char **p = &objects[(seed >> 8) % n];
            free(*p);
            CHECK((*p = malloc(SIZE - (seed >> 28))));
        }
        double now = now_s();
        /* On a machine that is too busy to run it, the program looks idle. */
        if (now - last > 0.3) {
            fprintf(stderr, "given up: the program did not run for %.1f s\n", now - last);
            return;
        }
        CHECK(threads() == 1);
        last = now;
    }
}

static void gives_back(void (*meanwhile)(void)) {
    size_t n = fill(300 * MIB);
    size_t full = rss_kib();
    leave_holes(n);
    for (double end = now_s() + PATIENCE_S; rss_kib() > full / 2; nap_ms(20)) {
        CHECK(now_s() < end);
        meanwhile();
    }
    for (size_t i = 0; i < n; i += KEEP_ONE_IN)
        for (int at = 0; at < SIZE; at++)
            CHECK(objects[i][at] == 1);
}

static void nothing(void) {}

static void sleeps(void) {
    gives_back(nothing);
    CHECK(threads() == 2);
}

static void go_on_alone(void) {
    go_on();
    CHECK(threads() == 1);
}

static void goes_on_alone(void) { gives_back(go_on_alone); }

static void *sleep_on(void *arg) {
    for (;;)
        nap_ms(100);
    return arg;
}

/* A free may not start the library's thread in a process that has another one. The memory still is
 * released, without a further request. */
static void with_sleeping_helper(int late) {
    enum { LARGE = 40000, N = 8000 };
    pthread_t thread;
    if (!late)
        CHECK(pthread_create(&thread, NULL, sleep_on, NULL) == 0);
    for (int i = 0; i < N; i++) {
        CHECK((objects[i] = malloc(LARGE)));
        memset(objects[i], 1, LARGE);
    }
    if (late)
        CHECK(pthread_create(&thread, NULL, sleep_on, NULL) == 0);
    /* Slow growth, as on a busy machine, can have started the library's thread before the helper.
     */
    CHECK(threads() == 3 || (late && threads() == 2));
    size_t live = 0;
    unsigned seed = 1;
    for (int i = 0; i < N; i++) {
        seed = seed * 1664525u + 1013904223u;
        if ((seed >> 8) % 10 < 6) {
            free(objects[i]);
            objects[i] = NULL;
        } else {
            live += LARGE;
        }
    }
    for (double end = now_s() + PATIENCE_S; rss_kib() > live / KIB / 100 * 117; nap_ms(20))
        CHECK(now_s() < end);
    for (int i = 0; i < N; i++)
        CHECK(!objects[i] || (objects[i][0] == 1 && objects[i][LARGE - 1] == 1));
}

static void helper(void) { with_sleeping_helper(0); }

static void late_helper(void) { with_sleeping_helper(1); }

static void reap(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The child forks too, and both continue. */
static void live_as_child(void) {
    pid_t grandchild = fork();
    CHECK(grandchild >= 0);
    go_on();
    if (grandchild > 0)
        reap(grandchild);
    _exit(0);
}

static void forks(void) {
    with_thread();
    for (int i = 0; i < 3; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            CHECK(threads() == 1);
            live_as_child();
        }
        /* Here it may be back already: a large heap lost hugepages to the fork. */
        reap(child);
        until_threads(2, 1);
    }
}

enum { NUMBERS = 2000, BYSTANDERS = 10 };

/* A child of this thread uses numbers on another thread's stack. The library's thread starts and
 * ends in the child. When it frees a stack of the C library there, the C library unmaps some of
 * those that other threads had. */
static void *fork_with_numbers(void *arg) {
    volatile int *numbers = arg;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        with_thread();
        pid_t grandchild = fork();
        if (grandchild == 0)
            _exit(0);
        reap(grandchild);
        for (int i = 0; i < NUMBERS; i++)
            CHECK(numbers[i] == i);
        _exit(0);
    }
    reap(child);
    return NULL;
}

static void *stand_by(void *arg) {
    pause();
    return arg;
}

static void *count_and_fork(void *arg) {
    volatile int numbers[NUMBERS];
    pthread_t thread;
    for (int i = 0; i < NUMBERS; i++)
        numbers[i] = i;
    for (int i = 0; i < BYSTANDERS; i++)
        CHECK(pthread_create(&thread, NULL, stand_by, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, fork_with_numbers, (void *)numbers) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    return arg;
}

static void forks_in_thread(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, count_and_fork, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* A process unknown to the C library has no thread either, and does not wait for one. */
static void cloned(void) {
    with_thread();
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    CHECK(child >= 0);
    if (child == 0) {
        CHECK(threads() == 1);
        live_as_child();
    }
    reap(child);
}

static pthread_barrier_t both;

static void *stay(void *arg) {
    free(malloc(100));
    pthread_barrier_wait(&both);
    pthread_barrier_wait(&both);
    return arg;
}

static void threaded(void) {
    pthread_t thread;
    pthread_barrier_init(&both, NULL, 2);
    CHECK(pthread_create(&thread, NULL, stay, NULL) == 0);
    pthread_barrier_wait(&both);
    fill(64 * MIB);
    until_threads(3, 1);
    pthread_barrier_wait(&both);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* The option may turn off the library's thread while it exists. */
static void told(void) {
    int (*set)(const char *, const char *) = NULL;
    *(void **)&set = dlsym(RTLD_DEFAULT, "craton_option_set");
    CHECK(set);
    with_thread();
    CHECK(set("background", "inline") == 0);
    until_threads(1, 0); /* the thread has ended, but the system may still list it for a moment */
    nap_ms(1100);
    go_on();
    CHECK(threads() == 1);
    CHECK(set("background", "1") == 0);
    until_threads(2, 1);
    CHECK(set("background", "0") == 0);
    until_threads(1, 0);
}

int main(int argc, char **argv) {
    static const struct part parts[] = {
        {"main_exits", main_exits},
        {"main_exits_first", main_exits_first},
        {"namespaces", namespaces},
        {"filtered", filtered},
        {"filtered_with_thread", filtered_with_thread},
        {"busy", busy},
        {"sleeps", sleeps},
        {"goes_on_alone", goes_on_alone},
        {"helper", helper},
        {"late_helper", late_helper},
        {"forks", forks},
        {"forks_in_thread", forks_in_thread},
        {"cloned", cloned},
        {"threaded", threaded},
        {"told", told},
        {NULL, NULL},
    };
    return run_part(argc, argv, parts);
}

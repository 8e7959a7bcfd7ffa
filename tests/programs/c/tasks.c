/* Tasks that share their creator's memory: vfork, clone with and without a thread pointer, popen;
 * and threads that allocate meanwhile. Every object has its owner's mark, checked before it is
 * freed: this detects an object with two owners. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 8, HELD = 40, STACK = 256 << 10 };

static atomic_int stop;

/* Allocates and frees, mostly few sizes, so that caches are shared; never more than some kilobytes.
 */
static void churn(unsigned seed, int rounds) {
    struct { unsigned char *p; size_t size; } held[HELD] = {{0}};
    for (int i = 0; i < rounds; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned r = seed >> 8, at = r % HELD;
        if (held[at].p) {
            CHECK(is_marked(held[at].p, held[at].size, (unsigned)(uintptr_t)held + at, held[at].size));
            free(held[at].p);
        }
        held[at].size = 16 + r % 7 * 24;
        CHECK((held[at].p = malloc(held[at].size)));
        mark(held[at].p, held[at].size, (unsigned)(uintptr_t)held + at);
    }
    for (unsigned i = 0; i < HELD; i++) {
        CHECK(!held[i].p || is_marked(held[i].p, held[i].size, (unsigned)(uintptr_t)held + i, held[i].size));
        free(held[i].p);
    }
}

static void *allocate_until_stopped(void *arg) {
    for (unsigned i = 0; !atomic_load(&stop); i++)
        churn((unsigned)(uintptr_t)arg + i, 2000);
    return NULL;
}

static void with_threads(void (*f)(void)) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, allocate_until_stopped, (void *)(i * 104729)) == 0);
    f();
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void reap(pid_t child, int options, int expected) {
    int status;
    CHECK(waitpid(child, &status, options) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

/* Moves the calling task to one of two processors. */
static void move_to(unsigned processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor % 2, &set);
    sched_setaffinity(0, sizeof set, &set); /* if there is such a one */
}

/* vfork, and a child that allocates before it exits or becomes another program. It moves to another
 * processor than its parent's area names. */
static void *vfork_some(void *arg) {
    churn(1, 100); /* as a thread that processors' caches serve */
    for (int i = 0; i < 100; i++) {
        pid_t child = vfork();
        CHECK(child >= 0);
        if (child == 0) {
            for (unsigned j = 0; j < 6; j++) {
                move_to(j);
                churn((unsigned)i, 1000);
            }
            if (i % 10 == 0)
                execl("/bin/true", "true", (char *)NULL);
            _exit(i % 10 == 0 ? 1 : 7);
        }
        reap(child, 0, i % 10 == 0 ? 0 : 7);
        churn((unsigned)i + 5, 100);
    }
    return arg;
}

static void vfork_in_threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, vfork_some, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void vforks(void) { with_threads(vfork_in_threads); }

static int churn_in_task(void *arg) {
    for (unsigned j = 0; j < 10; j++) {
        move_to(j);
        churn((unsigned)(uintptr_t)arg + 77, 2000);
    }
    syscall(60 /* exit */, 3);
    return 3;
}

/* A task with its parent's thread pointer, which runs at the same time, or while its parent sleeps.
 */
static void *clone_some(void *arg) {
    char *stack = malloc(STACK);
    CHECK(stack);
    churn(3, 1000);
    for (int i = 0; i < 20; i++) {
        int flags = CLONE_VM | CLONE_FS | CLONE_FILES | SIGCHLD | (arg ? CLONE_VFORK : 0);
        pid_t child = clone(churn_in_task, stack + STACK, flags, (void *)(uintptr_t)i);
        CHECK(child > 0);
        churn((unsigned)i, 20000);
        reap(child, 0, 3);
    }
    CHECK(clone(churn_in_task, NULL, CLONE_VM | SIGCHLD, NULL) == -1 && errno == EINVAL);
    churn(4, 1000);
    free(stack);
    return NULL;
}

static void clone_in_threads(void *arg) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, clone_some, arg) == 0);
    clone_some(arg);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void clone_beside(void) { clone_in_threads(NULL); }
static void clone_before(void) { clone_in_threads(&stop); }
static void clones(void) { with_threads(clone_beside); }
static void clone_vforks(void) { with_threads(clone_before); }

/* A task with a separate thread pointer and thread-local memory like the C library's, but unknown
 * to the C library: its rseq registration reads as zeros, which look like processor 0, but is
 * missing. */
static void *clone_with_pointer(void *arg) {
    void *(*allocate)(void *) = (void *(*)(void *))dlsym(RTLD_DEFAULT, "_dl_allocate_tls");
    CHECK(allocate);
    char *stack = malloc(STACK), *own = (char *)__builtin_thread_pointer();
    CHECK(stack);
    for (int i = 0; i < 20; i++) {
        char *pointer = allocate(NULL);
        CHECK(pointer);
        ((void **)pointer)[0] = pointer;
        ((void **)pointer)[2] = pointer;
        memcpy(pointer + 0x28, own + 0x28, 16); /* the guards of stack and pointers */
        int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SETTLS | SIGCHLD;
        pid_t child = clone(churn_in_task, stack + STACK, flags, (void *)(uintptr_t)i, NULL, pointer);
        CHECK(child > 0);
        churn((unsigned)i, 20000);
        reap(child, 0, 3);
    }
    free(stack);
    return arg;
}

static void clone_with_pointers(void) {
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, clone_with_pointer, NULL) == 0);
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void clones_with_pointers(void) { with_threads(clone_with_pointers); }

static void *popen_some(void *arg) {
    for (int i = 0; i < 15; i++) {
        FILE *pipe = popen("echo hello", "r");
        char text[16] = "";
        CHECK(pipe && fgets(text, sizeof text, pipe) && strcmp(text, "hello\n") == 0);
        CHECK(pclose(pipe) == 0);
        churn((unsigned)i, 100);
    }
    return arg;
}

static void popen_in_threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, popen_some, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* The process's first request comes from a child in its memory, without a cache; the parent's
 * follow. */
static void first_in_child(void) {
    pid_t child = vfork();
    CHECK(child >= 0);
    if (child == 0) {
        void *small = malloc(10), *large = malloc(300000);
        _exit(small && large ? 7 : 1);
    }
    reap(child, 0, 7);
    void *after = malloc(10);
    CHECK(after);
    free(after);
}

static void popens(void) { with_threads(popen_in_threads); }

int main(int argc, char **argv) {
    static const struct part parts[] = {
        {"vforks", vforks},   {"clones", clones},           {"clone_vforks", clone_vforks},
        {"first_in_child", first_in_child}, {"popens", popens},   {"clones_with_pointers", clones_with_pointers},
        {0},
    };
    return run_part(argc, argv, parts);
}

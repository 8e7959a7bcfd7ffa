/* Forks while threads allocate. A child that inherits a lock held by a missing thread would hang.
 */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { THREADS = 6, FORKS = 300 };

static atomic_int stop;

static void churn(unsigned seed, int rounds) {
    void *p[100] = {0};
    for (int i = 0; i < rounds; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned r = seed >> 8;
        size_t size = r % 97 == 0 ? 300000 + r % 600000 : r % 13 == 0 ? r % 60000 : r % 900;
        free(p[r % 100]);
        p[r % 100] = r % 5 ? malloc(size) : calloc(1, size);
        CHECK(p[r % 100]);
        if (r % 4 == 0)
            CHECK((p[r % 100] = realloc(p[r % 100], size + r % 2000 + 1)));
        if (r % 1009 == 0)
            free(malloc(40 * MIB));
    }
    for (int i = 0; i < 100; i++)
        free(p[i]);
}

static void *allocate_until_stopped(void *arg) {
    for (unsigned i = 0; !atomic_load(&stop); i++)
        churn((unsigned)(uintptr_t)arg + i, 2000);
    return NULL;
}

static void *in_child(void *arg) {
    churn((unsigned)(uintptr_t)arg, 300);
    return NULL;
}

static void reap(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* The child allocates, sometimes forks again or starts a thread, and leaves through exit. */
static void be_child(int i, void *inherited) {
    churn((unsigned)i, 300);
    free(inherited);
    if (i % 7 == 0) {
        pid_t grandchild = fork();
        CHECK(grandchild >= 0);
        if (grandchild == 0) {
            churn((unsigned)i + 5, 300);
            exit(0);
        }
        churn((unsigned)i + 6, 300);
        reap(grandchild);
    }
    if (i % 5 == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, in_child, (void *)(uintptr_t)i) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    exit(0);
}

int main(void) {
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, allocate_until_stopped, (void *)(i * 104729)) == 0);
    for (int i = 0; i < FORKS; i++) {
        void *object = malloc((size_t)i * 500);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            be_child(i, object);
        free(object);
        churn((unsigned)i, 50);
        reap(child);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}

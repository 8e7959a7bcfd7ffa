/* Many threads, each of which allocates and frees once, and sleeps. Prints the process's memory
 * meanwhile, and their number; with "idle" the same threads without allocating. */
#define _GNU_SOURCE
#include "check.h"
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

enum { MOST = 10000, STACK = 64 << 10 };

static int allocates;
static atomic_int ready;
static pthread_barrier_t end;

static void *sleep_on(void *arg) {
    if (allocates) {
        char *volatile p = malloc(100 + (size_t)(uintptr_t)arg % 400);
        CHECK(p);
        p[0] = 1;
        free(p);
    }
    atomic_fetch_add(&ready, 1);
    pthread_barrier_wait(&end);
    return NULL;
}

static void sleepers(void) {
    static pthread_t threads[MOST];
    /* The program's stacks, touched alike in both forms, for equal bookkeeping in the C library. */
    char *stacks = mmap(NULL, (size_t)MOST * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(stacks != MAP_FAILED);
    madvise(stacks, (size_t)MOST * STACK, MADV_NOHUGEPAGE);
    CHECK(pthread_barrier_init(&end, NULL, MOST + 1) == 0);
    for (int i = 0; i < MOST; i++) {
        pthread_attr_t attributes;
        char *stack = stacks + (size_t)i * STACK;
        for (size_t j = STACK - 16 * KIB; j < STACK; j += 4 * KIB)
            stack[j] = 1;
        CHECK(pthread_attr_init(&attributes) == 0);
        CHECK(pthread_attr_setstack(&attributes, stack, STACK) == 0);
        int refused = pthread_create(&threads[i], &attributes, sleep_on, (void *)(uintptr_t)i);
        if (refused) {
            printf("the system allows %d threads: %s\n", i, strerror(refused));
            fflush(stdout);
            exit(0);
        }
    }
    while (atomic_load(&ready) < MOST)
        usleep(1000);
    printf("threads %d rss_kib %zu\n", MOST, rss_kib());
    pthread_barrier_wait(&end);
    for (int i = 0; i < MOST; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void busy(void) {
    allocates = 1;
    sleepers();
}

int main(int argc, char **argv) {
    static const struct part parts[] = {{"busy", busy}, {"idle", sleepers}, {0}};
    return run_part(argc, argv, parts);
}

/* What hardened=1 promises, seen from a program. */
#define _GNU_SOURCE
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define MANY 256

static size_t dirt(const char *object, size_t from, size_t to) {
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        n += object[i] != 0;
    return n;
}

static void fill_and_free(size_t size) {
    char *all[MANY];
    for (int i = 0; i < MANY; i++) {
        CHECK((all[i] = malloc(size)) != NULL);
        memset(all[i], 0xa5, malloc_usable_size(all[i]));
    }
    for (int i = 0; i < MANY; i++)
        free(all[i]);
}

/* Reused objects are zero behind their link, up to 128 bytes. */
static void cleared(void) {
    static const size_t sizes[] = {16, 32, 48, 64, 100, 200, 256, 300, 1000, 5000, 30000, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int round = 0; round < 4; round++) {
            fill_and_free(sizes[i]);
            for (int n = 0; n < MANY; n++) {
                char *object = malloc(sizes[i]);
                size_t end = sizes[i] < 128 ? sizes[i] : 128;
                CHECK(dirt(object, 8, end) == 0);
                memset(object, 0xa5, sizes[i]);
                free(object);
            }
        }
}

/* A freed object does not come back with the next requests. */
static void waits(void) {
    static const size_t sizes[] = {16, 48, 64, 200, 1000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        fill_and_free(sizes[i]);
        for (int round = 0; round < 1000; round++) {
            void *object = malloc(sizes[i]);
            free(object);
            for (int n = 0; n < 3; n++) {
                void *other = malloc(sizes[i]);
                CHECK(other != object);
                free(other);
            }
        }
    }
}

/* Fresh objects are no row. */
static void order(void) {
    char *before = malloc(48);
    int rows = 0;
    for (int i = 0; i < MANY; i++) {
        char *next = malloc(48);
        rows += next - before == 48;
        before = next;
    }
    CHECK(rows < MANY / 2);
}

static int ends_by_fault(char *at) {
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile char *)at = 1;
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV;
}

/* Behind a large object is a guard page, also when its span is reused or resized. There are fewer
 * here than the library installs in a few milliseconds. */
static void guards(void) {
    if (madvise(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096, 102) != 0) {
        puts("no guard pages on this kernel");
        exit(0);
    }
    char *objects[4];
    for (int i = 0; i < 4; i++) {
        CHECK((objects[i] = malloc(150000 + i * 200000)) != NULL);
        memset(objects[i], 1, malloc_usable_size(objects[i]));
        CHECK(ends_by_fault(objects[i] + malloc_usable_size(objects[i])));
    }
    free(objects[1]);
    char *again = malloc(350000);
    memset(again, 2, malloc_usable_size(again));
    CHECK(ends_by_fault(again + malloc_usable_size(again)));
    CHECK((objects[3] = realloc(objects[3], 1500000)) != NULL);
    CHECK(objects[3][740000] == 1);
    memset(objects[3], 3, malloc_usable_size(objects[3]));
    CHECK(ends_by_fault(objects[3] + malloc_usable_size(objects[3])));
    free(objects[0]);
    free(objects[2]);
    free(objects[3]);
    malloc_trim(0);
    /* Spans that had a guard page serve all sizes, whole. */
    for (int i = 0; i < 400; i++) {
        size_t size = 3000 + i % 90 * 5000;
        char *object = malloc(size);
        memset(object, 4, malloc_usable_size(object));
        if (i % 3)
            free(object);
    }
}

static void *churn(void *seed) {
    unsigned random = (unsigned)(uintptr_t)seed;
    char *slots[200] = {0};
    int turns = rounds(20000, 200000);
    for (int i = 0; i < turns; i++) {
        random = random * 1103515245 + 12345;
        int slot = random >> 16 & 127;
        size_t size = 1 + (random >> 8 & 0xff) * (slot % 8 == 0 ? 900 : 6);
        free(slots[slot]);
        CHECK((slots[slot] = malloc(size)) != NULL);
        memset(slots[slot], slot, size);
    }
    for (int i = 0; i < 200; i++)
        free(slots[i]);
    return NULL;
}

/* Threads, and forks in the midst of them. */
static void threads(void) {
    pthread_t all[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&all[i], NULL, churn, (void *)(uintptr_t)(i + 1)) == 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        if (child == 0) {
            churn((void *)77);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(all[i], NULL);
}

#define PART(name) {#name, name}
static const struct part PARTS[] = {PART(cleared), PART(waits), PART(order), PART(guards), PART(threads), {NULL, NULL}};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

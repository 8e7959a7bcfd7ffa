/* Opens the library long after the program's start, beside the program's allocator. Arguments: the
 * library's path and a part. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

static void *library;
static void *(*craton_malloc)(size_t), *(*craton_calloc)(size_t, size_t), *(*craton_realloc)(void *, size_t);
static void (*craton_free)(void *);
static size_t (*craton_usable)(void *);

static void *symbol(const char *name) {
    void *address = dlsym(library, name);
    CHECK(address);
    return address;
}

static void open_library(const char *path) {
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    craton_malloc = symbol("malloc");
    craton_calloc = symbol("calloc");
    craton_realloc = symbol("realloc");
    craton_free = symbol("free");
    craton_usable = symbol("malloc_usable_size");
    CHECK(craton_malloc != malloc && craton_free != free);
}

static void allocate(void) {
    void *p[3000];
    for (size_t i = 0; i < 3000; i++) {
        CHECK((p[i] = craton_malloc(i * 3)));
        mark(p[i], i * 3, (unsigned)i);
    }
    for (size_t i = 0; i < 3000; i++) {
        CHECK(is_marked(p[i], i * 3, (unsigned)i, i * 3));
        CHECK((p[i] = craton_realloc(p[i], i * 4 + 1)));
        CHECK(is_marked(p[i], i * 3, (unsigned)i, i * 3));
        craton_free(p[i]);
    }
    for (size_t n = 1; n <= 128 * MIB; n *= 2) {
        unsigned char *q = craton_calloc(1, n);
        CHECK(q && q[0] == 0 && q[n - 1] == 0 && craton_usable(q) >= n);
        q[n - 1] = 1;
        craton_free(q);
    }
}

static void use_and_close(void) {
    allocate();
    void *kept = craton_malloc(5000);
    mark(kept, 5000, 1);
    for (int i = 0; i < 3; i++) {
        CHECK(dlclose(library) == 0);
        /* Its objects and its functions stay. */
        CHECK(is_marked(kept, 5000, 1, 5000));
        allocate();
        void *p = malloc(100);
        CHECK(p);
        free(p);
        char path[4096];
        CHECK(snprintf(path, sizeof path, "%s", getenv("LIBRARY_UNDER_TEST")) > 0);
        open_library(path);
    }
    craton_free(kept);
}

/* Objects of the process's allocator that reach ours are passed back to it. */
static void foreign(void) {
    for (size_t n = 1; n < 4 * MIB; n = n * 3 + 1) {
        unsigned char *p = malloc(n), *q = calloc(1, n), *r = memalign(256, n);
        mark(p, n, 1);
        CHECK(craton_usable(p) == malloc_usable_size(p));
        p = craton_realloc(p, n * 2);
        CHECK(p && is_marked(p, n, 1, n));
        CHECK(craton_usable(p) == malloc_usable_size(p) && malloc_usable_size(p) >= n * 2);
        craton_free(p);
        craton_free(q);
        craton_free(r);
        CHECK(craton_realloc(malloc(n), 0) == NULL);
    }
    char *copy = strdup("a string of libc's own");
    craton_free(copy);
    allocate();
}

static void *in_thread(void *arg) {
    if (arg)
        open_library(arg);
    allocate();
    void *p = malloc(1000);
    craton_free(p);
    return NULL;
}

static void second_thread(void) {
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    allocate();
}

static pthread_barrier_t together;

static void *wait_then_use(void *arg) {
    (void)arg;
    free(malloc(100));
    pthread_barrier_wait(&together);
    pthread_barrier_wait(&together); /* the library is open */
    return in_thread(NULL);
}

int main(int argc, char **argv) {
    CHECK(argc == 3);
    setenv("LIBRARY_UNDER_TEST", argv[1], 1);
    if (strcmp(argv[2], "opened_in_a_thread") == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, in_thread, argv[1]) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
        allocate();
        return 0;
    }
    if (strcmp(argv[2], "after_many_threads") == 0) {
        enum { MANY = 100 };
        pthread_t threads[MANY];
        pthread_barrier_init(&together, NULL, MANY + 1);
        for (int i = 0; i < MANY; i++)
            CHECK(pthread_create(&threads[i], NULL, wait_then_use, NULL) == 0);
        pthread_barrier_wait(&together);
        open_library(argv[1]);
        allocate();
        pthread_barrier_wait(&together);
        for (int i = 0; i < MANY; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        return 0;
    }
    open_library(argv[1]);
    static const struct part parts[] = {
        {"use_and_close", use_and_close}, {"foreign", foreign}, {"second_thread", second_thread}, {NULL, NULL}};
    return run_part(argc - 1, argv + 1, parts);
}

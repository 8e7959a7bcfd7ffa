/* Memory that crosses between the program and a library with another malloc: opened by dlmopen, or
 * by dlopen with RTLD_DEEPBIND. Arguments: a part and the library. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>

struct module {
    void *(*give)(size_t);
    char *(*copy)(const char *), *(*take_early)(void);
    void (*take)(void *);
    void *(*grow)(void *, size_t);
    int (*ask_whose)(void);
};

static const char *path;
int whose(void) { return 1; }

static struct module find(void *library) {
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(library);
    struct module m = {dlsym(library, "give"), dlsym(library, "copy"), dlsym(library, "take_early"), dlsym(library, "take"),
                       dlsym(library, "grow"), dlsym(library, "ask_whose")};
    CHECK(m.give && m.copy && m.take_early && m.take && m.grow && m.ask_whose);
    return m;
}

static struct module apart(void) { return find(dlmopen(LM_ID_NEWLM, path, RTLD_NOW)); }

/* The program frees, resizes and measures the library's objects. */
static void to_program(const struct module *m) {
    for (size_t size = 1; size <= 64 * MIB; size = size * 3 + 1) {
        char *p[20];
        for (int i = 0; i < 20; i++) {
            CHECK((p[i] = m->give(size)));
            mark(p[i], size < 4096 ? size : 4096, (unsigned)i);
            if (size > MIB) {
                free(p[i]);
                p[i] = NULL;
            }
        }
        for (int i = 0; i < 20; i++) {
            CHECK(!p[i] || is_marked(p[i], size < 4096 ? size : 4096, (unsigned)i, 4096));
            CHECK(!p[i] || malloc_usable_size(p[i]) >= size);
            free(p[i]);
        }
    }
    char *p = m->give(100);
    mark(p, 100, 5);
    for (size_t size = 200; size < 8 * MIB; size *= 5) {
        CHECK((p = realloc(p, size)) && malloc_usable_size(p) >= size && is_marked(p, 100, 5, 100));
    }
    CHECK(realloc(p, 0) == NULL);
    p = m->copy("some text");
    CHECK(strcmp(p, "some text") == 0);
    free(p);
    p = m->take_early();
    CHECK(strcmp(p, "made at the opening") == 0);
    free(p);
}

/* The library frees and resizes the program's objects. */
static void to_library(const struct module *m) {
    for (size_t size = 1; size <= 64 * MIB; size = size * 3 + 1) {
        char *p = malloc(size), *q = malloc(size);
        mark(p, size, 1);
        CHECK((p = m->grow(p, 2 * size)) && is_marked(p, size, 1, size));
        m->take(p);
        m->take(q);
    }
    m->take(strdup("some text"));
}

static void namespace(void) {
    struct module m = apart();
    CHECK(m.ask_whose() == 2);
    to_program(&m);
}

/* Of most objects nothing tells which of the C libraries has them. */
static void namespaces(void) {
    for (int i = 0; i < 3; i++) {
        struct module m = apart();
        to_program(&m);
    }
}

/* A library of another namespace that is linked with Craton has a copy of it. */
static void namespace_with_craton(void) {
    struct module m = apart();
    to_program(&m);
    to_library(&m);
    struct module n = apart();
    to_program(&n);
    to_library(&n);
    void *p = m.give(1000);
    n.take(p);
}

static void *in_thread(void *unused) {
    (void)unused;
    struct module m = apart();
    to_program(&m);
    return NULL;
}

static void namespaces_in_threads(void) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, in_thread, NULL) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void deepbind(void) {
    struct module m = find(dlopen(path, RTLD_NOW | RTLD_DEEPBIND));
    CHECK(m.ask_whose() == 2);
    to_program(&m);
    to_library(&m);
    CHECK(dlsym(dlopen("libc.so.6", RTLD_NOW), "free") == (void *)free);
}

static void deepbind_lazily(void) {
    struct module m = find(dlopen(path, RTLD_LAZY | RTLD_DEEPBIND));
    to_program(&m);
    to_library(&m);
}

/* The program's search path holds for its calls: `path` is a name without a folder. */
static void search_path(void) {
    struct module m = find(dlopen(path, RTLD_NOW));
    CHECK(m.ask_whose() == 1);
    to_program(&m);
    to_library(&m);
    CHECK(!dlopen("no-such-library-here.so", RTLD_NOW) && strstr(dlerror(), "no-such-library-here.so"));
    CHECK(dlopen(NULL, RTLD_NOW));
}

/* Neither is one of its objects. */
static void inside(void) {
    struct module m = apart();
    free((char *)m.give(100) + 16);
}

static void unknown(void) {
    struct module m = apart();
    CHECK(m.give(100));
    static char room[256] __attribute__((aligned(16)));
    free(room + 64);
}

int main(int argc, char **argv) {
    path = argv[2];
    static const struct part parts[] = {{"namespace", namespace},
                                        {"namespace_with_craton", namespace_with_craton},
                                        {"namespaces", namespaces},
 {"namespaces_in_threads", namespaces_in_threads},
                                        {"deepbind", deepbind},
                                        {"deepbind_lazily", deepbind_lazily},
                                        {"search_path", search_path},
                                        {"inside", inside},
                                        {"unknown", unknown},
                                        {0}};
    return run_part(argc, argv, parts);
}

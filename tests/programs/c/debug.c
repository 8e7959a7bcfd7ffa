/* The debugging kit in a program: turned on and off at run time, in samples, through forks and
 * threads. */
#include "check.h"

#include <craton.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

static int (*set)(const char *, const char *);
static size_t (*json)(char *, size_t);
static size_t (*look)(void);
static size_t (*usable)(void *);

static void find_calls(void) {
    set = (int (*)(const char *, const char *))dlsym(RTLD_DEFAULT, "craton_option_set");
    json = (size_t(*)(char *, size_t))dlsym(RTLD_DEFAULT, "craton_stats_json");
    look = (size_t(*)(void))dlsym(RTLD_DEFAULT, "craton_debug_check");
    usable = (size_t(*)(void *))dlsym(RTLD_DEFAULT, "malloc_usable_size");
    CHECK(set && json && look && usable);
}

/* A number of the statistics' list `debug`. */
static unsigned long counted(const char *field) {
    static char text[1 << 18], key[64];
    CHECK(json(text, sizeof text) < sizeof text);
    snprintf(key, sizeof key, "\"%s\":", field);
    char *list = strstr(text, "\"debug\":{");
    CHECK(list && strstr(list, key));
    return strtoul(strstr(list, key) + strlen(key), NULL, 10);
}

/* Earlier objects keep their sizes and can be freed; new ones have exactly the requested size,
 * until the kit is off again. */
static void live(void) {
    find_calls();
    enum { N = 2000 };
    static void *before[N], *within[N], *after[N];
    for (int i = 0; i < N; i++)
        CHECK((before[i] = malloc(20)));
    for (int i = 0; i < N / 2; i++)
        free(before[i]);
    errno = 0;
    CHECK(set("debug", "audit,no_such_check") == -1 && errno == EINVAL);
    CHECK(set("debug", "audit,redzone,poison:20") == 0);
    int buffers = 0;
    for (int i = 0; i < N; i++) {
        CHECK((within[i] = malloc(20)));
        buffers += usable(within[i]) == 20;
    }
    /* Objects in the thread's cache may be used first. */
    CHECK(buffers >= N - 64 && counted("buffers") == (unsigned long)buffers);
    CHECK(usable(malloc(100)) > 100); /* another class */
    CHECK(look() == (size_t)buffers);
    CHECK(set("debug", "none") == 0);
    for (int i = 0; i < N; i++) {
        CHECK((after[i] = malloc(20)) && usable(after[i]) == 32);
        free(within[i]);
    }
    for (int i = N / 2; i < N; i++)
        free(before[i]);
    for (int i = 0; i < N; i++)
        free(after[i]);
    CHECK(counted("buffers") == 0 && counted("transactions") >= 2 * (unsigned long)buffers);
}

/* The log's capacity: all transactions are counted, and the last ones kept. */
static void overflowing(void) {
    find_calls();
    for (int i = 0; i < 1000; i++)
        free(malloc(40));
    CHECK(counted("transactions") >= 2000 && counted("transactions_kept") == 16);
    char value[32];
    int (*get)(const char *, char *, size_t) = (int (*)(const char *, char *, size_t))dlsym(RTLD_DEFAULT, "craton_option_get");
    CHECK(get && get("audit_log", value, sizeof value) == 2 && strcmp(value, "16") == 0);
    errno = 0;
    CHECK(set("audit_log", "32") == -1 && errno == EINVAL); /* it is made */
}

static void *churn(void *seed) {
    unsigned x = (unsigned)(uintptr_t)seed;
    static __thread char *objects[300];
    static __thread size_t sizes[300];
    for (int i = 0; i < 20000; i++) {
        x = x * 1103515245 + 12345;
        int n = (int)(x >> 16) % 300;
        for (size_t j = 0; objects[n] && j < sizes[n]; j += 31)
            CHECK(objects[n][j] == (char)n);
        free(objects[n]);
        sizes[n] = (x >> 8) % 700;
        CHECK((objects[n] = malloc(sizes[n])));
        memset(objects[n], n, sizes[n]);
    }
    for (int n = 0; n < 300; n++)
        free(objects[n]);
    return NULL;
}

/* The kit is turned on and off for several classes while threads allocate and free. */
static void toggled(void) {
    find_calls();
    pthread_t threads[3];
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) == 0);
    const char *values[] = {"all", "none", "redzone,poison:64+large", "audit,poison,guard", "none", "guard,unmap"};
    for (int i = 0; i < 60; i++) {
        CHECK(set("debug", values[i % 6]) == 0);
        usleep(3000);
    }
    for (int i = 0; i < 3; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(set("debug", "none") == 0 && counted("buffers") < 100);
}

/* Children go on under the kit, while other threads are in it. */
static void forks(void) {
    pthread_t threads[2];
    for (uintptr_t i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, churn, (void *)(i + 7)) == 0);
    for (int i = 0; i < 30; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            for (int j = 0; j < 300; j++) {
                char *p = malloc((size_t)j);
                CHECK(p);
                memset(p, j, (size_t)j);
                free(p);
            }
            _exit(7);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    }
    for (int i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void *frees(void *p) {
    printf(" %d", gettid());
    fflush(stdout);
    free(p);
    return NULL;
}

/* A thread of the child frees a buffer of the process, and the child frees it again. Prints
 * process, thread and child. */
static void numbers(void) {
    void *p = malloc(40);
    printf("%d", gettid());
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, frees, p) == 0 && pthread_join(thread, NULL) == 0);
        frees(malloc(40));
        free(p);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

/* Makes many guard pages, and forks: from then on there are few mappings. Prints their number
 * before and after. */
static void marks(void) {
    enum { N = 10000 };
    static char *objects[N];
    for (int i = 0; i < N; i++)
        CHECK((objects[i] = malloc(40)));
    for (int i = 0; i < N - 100; i++)
        free(objects[i]);
    for (int round = 0; round < 2; round++) {
        int lines = 0;
        FILE *maps = fopen("/proc/self/maps", "r");
        CHECK(maps);
        for (int c; (c = getc(maps)) != EOF;)
            lines += c == '\n';
        fclose(maps);
        printf("%d ", lines);
        fflush(stdout);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            churn((void *)3);
            exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    churn((void *)5);
}

/* Allocates many objects that stay, some of which are samples. Prints their number. */
static void sampled(void) {
    find_calls();
    enum { N = 40000 };
    static void *objects[N];
    /* The C library's buffers for output can be samples, too. */
    setvbuf(stdout, NULL, _IONBF, 0);
    unsigned long before = counted("samples"), kept = counted("buffers");
    for (int i = 0; i < N; i++)
        CHECK((objects[i] = malloc(24 + i % 100)));
    unsigned long all = counted("samples");
    /* One may have come before these objects: the statistics count it, too. */
    printf("%lu %lu\n", all - before, all);
    for (int i = 0; i < N; i++)
        free(objects[i]);
    CHECK(counted("buffers") == kept);
}

/* More buffers are out than the kit has pages for. */
static void more_than_pages(void) {
    enum { N = 40000 };
    static char *objects[N];
    for (int i = 0; i < N; i++) {
        CHECK((objects[i] = malloc(40)));
        memset(objects[i], i, 40);
    }
    for (int i = 0; i < N; i++) {
        CHECK(objects[i][0] == (char)i && objects[i][39] == (char)i);
        free(objects[i]);
    }
}

/* Writes a byte past the end of each of four objects. */
static void past_the_end(void) {
    char *objects[4];
    for (int i = 0; i < 4; i++) {
        objects[i] = malloc(24);
        ((volatile char *)objects[i])[24] = 'x';
    }
    for (int i = 0; i < 4; i++)
        free(objects[i]);
}

/* Writes a byte past the end of each object of a loop, and prints every hundred thousand turns. */
static void past_ends_of(size_t size) {
    for (int i = 0; i < 20000000; i++) {
        volatile char *object = malloc(size);
        object[size] = 'x';
        free((void *)object);
        if (i % 100000 == 99999)
            CHECK(write(1, ".", 1) == 1);
    }
}

static void past_each_end(void) { past_ends_of(100); }
static void past_each_end_of_pages(void) { past_ends_of(20000); }

/* Prints the process's memory in KiB after a second of correct turns from many places. */
static void holds(void) {
    struct timespec begun, now;
    clock_gettime(CLOCK_MONOTONIC, &begun);
    do {
        for (int i = 0; i < 10000; i++)
            free(malloc(100 + (size_t)i % 7 * 100));
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begun.tv_sec < 2);
    printf("%zu\n", rss_kib());
}

static const struct part PARTS[] = {
    {"live", live}, {"toggled", toggled},           {"forks", forks},
    {"numbers", numbers}, {"more_than_pages", more_than_pages}, {"overflowing", overflowing}, {"marks", marks},             {"sampled", sampled},
    {"past_the_end", past_the_end}, {"past_each_end", past_each_end}, {"past_each_end_of_pages", past_each_end_of_pages},
    {"holds", holds}, {NULL, NULL},
};

int main(int argc, char **argv) {
    return run_part(argc, argv, PARTS);
}

/* A program under a soft or hard limit. The first argument names the part. */
#define _GNU_SOURCE
#include "check.h"
#include "craton.h"
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <sys/wait.h>

/* The library is preloaded: its functions are looked for. */
static const struct craton_segment *segment;
static int (*option_set)(const char *, const char *);
static int (*background_actions)(void);
static void (*set_limit_callback)(void (*)(void *, size_t, size_t), void *);

static void find(void *into, const char *name) {
    *(void **)into = dlsym(RTLD_DEFAULT, name);
    CHECK(*(void **)into);
}

static size_t used(void) {
    return segment->heap_backed_bytes + segment->metadata_bytes + segment->huge_bytes;
}

struct object {
    struct object *next;
    size_t size;
};

/* Allocates objects of a size into a list, until `most` bytes or refusal. */
static size_t fill(struct object **list, size_t size, size_t most) {
    size_t bytes = 0;
    for (; bytes < most; bytes += size) {
        errno = 0;
        struct object *new = malloc(size);
        if (!new) {
            CHECK(errno == ENOMEM);
            return bytes;
        }
        memset(new, 1, size);
        *new = (struct object){*list, size};
        *list = new;
    }
    return bytes;
}

/* Frees all objects but each `kept`th; 0 for none. */
static void thin(struct object **list, unsigned kept) {
    struct object *at = *list, *left = NULL;
    for (unsigned i = 1; at; i++) {
        struct object *next = at->next;
        if (kept && i % kept == 0) {
            at->next = left;
            left = at;
        } else {
            free(at);
        }
        at = next;
    }
    *list = left;
}

static struct {
    struct object *cache;
    size_t limit, used;
    unsigned calls, depth, forks;
    int drops, allocates;
} seen;

static void passed(void *arg, size_t limit, size_t used_bytes) {
    CHECK(arg == &seen && seen.depth == 0 && used_bytes > limit);
    seen.depth++;
    seen.calls++;
    seen.limit = limit;
    seen.used = used_bytes;
    if (seen.drops)
        thin(&seen.cache, 0);
    if (seen.allocates) {
        struct object *list = NULL;
        CHECK(fill(&list, 100000, 10 * MIB) >= 10 * MIB);
        thin(&list, 0);
    }
    if (seen.forks > 0) {
        seen.forks--;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            struct object *list = NULL;
            CHECK(fill(&list, 1000, 20 * MIB) >= 20 * MIB);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    seen.depth--;
}

/* soft_limit=100M: free memory between objects is released, without a callback. */
static void soft_gives_back(void) {
    struct object *list = NULL, *large = NULL;
    set_limit_callback(passed, &seen);
    CHECK(segment->soft_limit_bytes == 100 * MIB && segment->hard_limit_bytes == 0);
    fill(&list, 4000, 80 * MIB);
    thin(&list, 128);
    size_t before = rss_kib();
    CHECK(segment->soft_limit_passed == 0 && before > 70 * KIB);
    fill(&large, MIB, 45 * MIB);
    CHECK(segment->soft_limit_passed > 0 && seen.calls == 0);
    CHECK(rss_kib() < 110 * KIB);
    thin(&large, 0);
    thin(&list, 0);
}

/* soft_limit=64M: an excess that remains is reported, but not by each request. */
static void soft_calls_back(void) {
    struct object *list = NULL;
    set_limit_callback(passed, &seen);
    seen.allocates = 1;
    fill(&list, 1000, 60 * MIB);
    CHECK(seen.calls == 0);
    fill(&list, 1000, 100 * MIB);
    CHECK(seen.calls > 0 && seen.calls < 200 && seen.limit == 64 * MIB && seen.used > 64 * MIB);
    seen.allocates = 0;
    /* Above the limit, but not growing: time passes, so some calls are right. */
    unsigned before = seen.calls;
    time_t start = time(NULL);
    for (int i = 0; i < 20000; i++) {
        struct object *more = NULL;
        fill(&more, 300000, 300000);
        thin(&more, 0);
    }
    CHECK(seen.calls - before <= 40 + 3 * (unsigned)(time(NULL) - start));
    set_limit_callback(NULL, NULL);
    before = seen.calls;
    fill(&list, 1000, 50 * MIB);
    CHECK(seen.calls == before);
    thin(&list, 0);
}

/* soft_limit=64M: the program drops its cached data, and continues. */
static void soft_drops(void) {
    set_limit_callback(passed, &seen);
    seen.drops = 1;
    for (int i = 0; i < 500; i++) {
        fill(&seen.cache, 1 + i % 3 * 30000 + sizeof(struct object), 2 * MIB);
        CHECK(used() < 96 * MIB);
    }
    CHECK(seen.calls >= 5);
}

/* soft_limit=32M: the callback may fork, and the program at its limit, too. */
static void soft_forks(void) {
    struct object *list = NULL;
    set_limit_callback(passed, &seen);
    seen.forks = 3;
    fill(&list, 1000, 64 * MIB);
    CHECK(seen.calls >= 3 && seen.forks == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        unsigned before = seen.calls;
        fill(&list, 1000, 64 * MIB);
        CHECK(seen.calls > before);
        thin(&list, 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    thin(&list, 0);
}

static const size_t SIZES[] = {100, 5000, 100000, 300000, 5 * MIB, 40 * MIB};
enum { KINDS = sizeof SIZES / sizeof *SIZES };

/* hard_limit=128M */
static void hard_refuses(void) {
    size_t hard = segment->hard_limit_bytes;
    CHECK(hard == 128 * MIB);
    for (int i = 0; i < KINDS; i++) {
        struct object *list = NULL, *more = NULL;
        unsigned long refused = segment->hard_limit_refused;
        size_t size = SIZES[i], first = fill(&list, size, SIZE_MAX);
        fprintf(stderr, "%zu bytes in objects of %zu\n", first, size);
        CHECK(segment->hard_limit_refused == refused + 1);
        CHECK(rss_kib() * KIB < hard + 16 * MIB);
        CHECK(first > 3 * hard / 5);
        CHECK(used() <= hard);
        errno = 0;
        CHECK(calloc(1, 100 * MIB) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(aligned_alloc(4096, 100 * MIB) == NULL && errno == ENOMEM);
        void *same = realloc(list, 110 * MIB);
        CHECK((same == NULL && errno == ENOMEM && list->size == size) || size > 20 * MIB);
        list = same ? same : list;
        thin(&list, 2);
        CHECK(fill(&more, size, SIZE_MAX) + 4 * size >= first / 3);
        /* The gaps between objects have no memory any more, and do not count. */
        CHECK(used() <= hard);
        thin(&more, 0);
        thin(&list, 0);
    }
    void *object = malloc(100 * MIB);
    CHECK(object);
    CHECK((object = realloc(object, 110 * MIB)));
    CHECK(!realloc(object, 200 * MIB));
    free(object);
    CHECK(option_set("hard_limit", "none") == 0 && segment->hard_limit_bytes == 0);
    CHECK((object = malloc(300 * MIB)));
    free(object);
}

/* Both limits are set when more is in use. */
static void below_use(void) {
    struct object *list = NULL;
    set_limit_callback(passed, &seen);
    fill(&list, 4000, 100 * MIB);
    thin(&list, 32);
    CHECK(option_set("soft_limit", "20M") == 0);
    CHECK(rss_kib() < 40 * KIB);
    unsigned calls = seen.calls;
    fill(&list, 4000, 30 * MIB);
    CHECK(seen.calls > calls);
    CHECK(option_set("hard_limit", "10MiB") == 0 && segment->hard_limit_bytes == 10 * MIB);
    errno = 0;
    CHECK(malloc(2 * MIB) == NULL && errno == ENOMEM);
    CHECK(malloc(40 * MIB) == NULL && errno == ENOMEM);
    thin(&list, 0);
    void *object = malloc(2 * MIB);
    CHECK(object);
    free(object);
    CHECK(option_set("soft_limit", "auto") == 0 && option_set("hard_limit", "none") == 0);
    /* What percentages are of counts, too. */
    fill(&list, 4000, 30 * MIB);
    CHECK(option_set("memory_limit", "100M") == 0 && option_set("hard_limit", "50%") == 0);
    CHECK(option_set("memory_limit", "20M") == 0 && segment->hard_limit_bytes == 10 * MIB);
    errno = 0;
    CHECK(malloc(2 * MIB) == NULL && errno == ENOMEM);
    CHECK(option_set("hard_limit", "none") == 0 && option_set("memory_limit", "none") == 0);
    thin(&list, 0);
}

static void bad_options(void) {
    static const char *const BAD[][2] = {
        {"soft_limit", ""},      {"soft_limit", "0"},       {"soft_limit", "12Q"},   {"soft_limit", "101%"},
        {"hard_limit", "-1"},    {"hard_limit", "cgroup"},  {"memory_limit", "50%"}, {"memory_limit", "x"},
        {"pressure", "101"},     {"pressure", "ten"},       {"hard_limits", "1G"},   {"hard_limit", "99999999999T"},
    };
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        errno = 0;
        CHECK(option_set(BAD[i][0], BAD[i][1]) == -1 && errno == EINVAL);
    }
    /* With so little nothing runs. */
    static const char *const LIMITS[] = {"soft_limit", "hard_limit", "memory_limit"};
    for (size_t i = 0; i < 3; i++) {
        errno = 0;
        CHECK(option_set(LIMITS[i], "1048575") == -1 && errno == EINVAL);
    }
    CHECK(segment->soft_limit_bytes == 0 && segment->hard_limit_bytes == 0 && segment->memory_limit_bytes == 0);
    /* A soft limit above the hard one would never be reached. */
    CHECK(option_set("hard_limit", "100M") == 0);
    errno = 0;
    CHECK(option_set("soft_limit", "104857601") == -1 && errno == EINVAL && segment->soft_limit_bytes == 0);
    CHECK(option_set("soft_limit", "100M") == 0 && segment->soft_limit_bytes == 100 * MIB);
    CHECK(option_set("soft_limit", "none") == 0 && option_set("memory_limit", "64M") == 0);
    errno = 0;
    CHECK(option_set("hard_limit", "1%") == -1 && errno == EINVAL && segment->hard_limit_bytes == 100 * MIB);
    CHECK(option_set("hard_limit", "none") == 0 && option_set("soft_limit", "auto") == 0);
    CHECK(option_set("memory_limit", "2G") == 0 && segment->memory_limit_bytes == 2 * GIB);
    CHECK(segment->soft_limit_bytes == 2 * GIB / 10 * 9 || segment->soft_limit_bytes == 2 * GIB * 9 / 10);
    CHECK(option_set("hard_limit", "50%") == 0 && segment->hard_limit_bytes == GIB);
    CHECK(option_set("soft_limit", "none") == 0 && segment->soft_limit_bytes == 0);
    CHECK(option_set("memory_limit", "none") == 0 && option_set("soft_limit", "1GiB") == 0);
    CHECK(segment->memory_limit_bytes == 0 && segment->soft_limit_bytes == GIB);
    CHECK(option_set("hard_limit", "50%") == 0 && segment->hard_limit_bytes > 64 * MIB);
}

static void *work(void *arg) {
    unsigned state = (unsigned)(size_t)arg;
    struct object *mine = NULL;
    size_t refused = 0;
    for (int round = 0; round < 300; round++) {
        state = state * 1664525u + 1013904223u;
        size_t size = SIZES[(state >> 8) % 4];
        size_t bytes = fill(&mine, size, 4 * MIB);
        refused += bytes < 4 * MIB;
        thin(&mine, (state >> 16) % 3);
    }
    thin(&mine, 0);
    return (void *)refused;
}

enum { THREADS = 8 };

/* hard_limit=48M, soft_limit=40M */
static void threads(void) {
    pthread_t all[THREADS];
    size_t refused = 0;
    for (size_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&all[i], NULL, work, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < THREADS; i++) {
        void *result;
        CHECK(pthread_join(all[i], &result) == 0);
        refused += (size_t)result;
    }
    CHECK(refused > 0 && segment->hard_limit_refused > 0 && segment->soft_limit_passed > 0);
    CHECK(rss_kib() < 80 * KIB);
    void *object = malloc(40 * MIB);
    CHECK(object);
    free(object);
}

/* hard_limit=64M */
static void hard_forks(void) {
    struct object *list = NULL;
    CHECK(fill(&list, 5000, SIZE_MAX) > 32 * MIB);
    for (int i = 0; i < 5; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            struct object *more = NULL;
            CHECK(fill(&more, 300000, SIZE_MAX) < 8 * MIB);
            thin(&list, 0);
            CHECK(fill(&more, 300000, SIZE_MAX) > 32 * MIB);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    CHECK(malloc(MIB) == NULL);
    thin(&list, 0);
}

static int tasks(void) {
    int count = -2;
    DIR *dir = opendir("/proc/self/task");
    CHECK(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static int stop;

static void *maintain(void *arg) {
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        background_actions();
        sched_yield();
    }
    return arg;
}

/* background=0: a thread of the program does the library's background work. */
static void own_maintenance(void) {
    pthread_t thread;
    struct object *list = NULL;
    CHECK(background_actions() == 0 || background_actions() >= 0);
    CHECK(pthread_create(&thread, NULL, maintain, NULL) == 0);
    for (int i = 0; i < 20; i++) {
        fill(&list, SIZES[i % 5], 60 * MIB);
        thin(&list, 0);
    }
    CHECK(tasks() == 2);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(thread, NULL) == 0);
    errno = 99;
    background_actions();
    CHECK(errno == 99);
}

/* Runs in a control group with a limit of 200 MiB and half a processor; the test lowers it to 100
 * MiB after the first line. */
static void in_group(void) {
    struct object *list = NULL;
    CHECK(segment->memory_limit_bytes == 0);
    fill(&list, 4000, 40 * MIB);
    CHECK(segment->memory_limit_bytes == 200 * MIB && segment->soft_limit_bytes == 180 * MIB);
    printf("%d\n", (int)segment->usable_cpus);
    fflush(stdout);
    for (int i = 0; i < 600 && segment->memory_limit_bytes != 100 * MIB; i++) {
        usleep(100000);
        background_actions();
    }
    CHECK(segment->soft_limit_bytes == 90 * MIB);
    set_limit_callback(passed, &seen);
    seen.cache = list;
    seen.drops = 1;
    for (int i = 0; i < 200; i++)
        fill(&seen.cache, 4000, 2 * MIB);
    CHECK(seen.calls > 0 && seen.limit == 90 * MIB);
}

/* The heap grows enough for the library to read the control group, twice. */
static void grows(void) {
    struct object *list = NULL;
    CHECK(segment->memory_limit_source == 0);
    for (int i = 0; i < 3; i++) {
        fill(&list, 4000, 40 * MIB);
        thin(&list, 0);
        background_actions();
    }
    CHECK(segment->memory_limit_source >= 1 && segment->memory_limit_source <= 3);
    CHECK(option_set("memory_limit", "1G") == 0 && segment->memory_limit_source == 4);
}

/* The system says that it is short of memory. */
static void under_pressure(void) {
    struct object *list = NULL;
    fill(&list, 4000, 100 * MIB);
    thin(&list, 64);
    CHECK(rss_kib() > 80 * KIB && segment->pressure_releases == 0);
    background_actions();
    CHECK(segment->pressure_releases == 1 && rss_kib() < 40 * KIB);
    fill(&list, 4000, 50 * MIB);
    thin(&list, 64);
    background_actions();
    CHECK(segment->pressure_releases == 1); /* not so soon */
    thin(&list, 0);
}

static const struct part PARTS[] = {
    {"soft_gives_back", soft_gives_back},
    {"soft_calls_back", soft_calls_back},
    {"soft_drops", soft_drops},
    {"soft_forks", soft_forks},
    {"hard_refuses", hard_refuses},
    {"hard_forks", hard_forks},
    {"below_use", below_use},
    {"bad_options", bad_options},
    {"threads", threads},
    {"own_maintenance", own_maintenance},
    {"in_group", in_group},
    {"grows", grows},
    {"under_pressure", under_pressure},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    find(&segment, "craton_segment");
    find(&option_set, "craton_option_set");
    find(&background_actions, "craton_background_actions");
    find(&set_limit_callback, "craton_set_limit_callback");
    return run_part(argc, argv, PARTS);
}

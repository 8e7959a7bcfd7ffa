/* Ends of threads and processes, with their hooks: destructors of keys, handlers of fork, ways to
 * exit. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

static char *library;

/* Destructors that allocate, free others' objects, and set their key again: the C library calls
 * them in several rounds, some of them after the allocator's. */
enum { KEYS = 40 };
static pthread_key_t keys[KEYS];
static atomic_int destroyed;
struct round { int key, left; char *text; };

static void destroy(void *value) {
    struct round *old = value;
    CHECK(is_marked(old->text, 100, (unsigned)old->key, 100));
    free(old->text);
    atomic_fetch_add(&destroyed, 1);
    for (size_t i = 1; i < 30; i++)
        free(malloc(i * 50));
    if (old->left > 0) {
        struct round *next = malloc(sizeof *next);
        *next = (struct round){old->key, old->left - 1, malloc(100)};
        mark(next->text, 100, (unsigned)next->key);
        CHECK(pthread_setspecific(keys[next->key], next) == 0);
    }
    free(old);
}

static void *leave_values(void *arg) {
    for (int i = 0; i < KEYS; i++) {
        struct round *first = malloc(sizeof *first);
        *first = (struct round){i, 2, malloc(100)};
        mark(first->text, 100, (unsigned)i);
        CHECK(pthread_setspecific(keys[i], first) == 0);
    }
    return arg;
}

static void destructors(void) {
    for (int i = 0; i < KEYS; i++)
        CHECK(pthread_key_create(&keys[i], destroy) == 0);
    size_t before = 0;
    for (int round = 0; round < 40; round++) {
        pthread_t threads[16];
        for (int i = 0; i < 16; i++)
            CHECK(pthread_create(&threads[i], NULL, leave_values, NULL) == 0);
        for (int i = 0; i < 16; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        if (round == 4)
            before = mallinfo2().uordblks;
    }
    CHECK(destroyed == 40 * 16 * KEYS * 3);
    malloc_trim(0);
    CHECK(mallinfo2().uordblks < before + 4 * MIB);
}

/* Handlers of fork that allocate, registered before and after others, in POSIX's order. */
static char order[100];
static void *kept;
static int noting;

static void note(char c) {
    if (!noting)
        return;
    size_t n = strlen(order);
    order[n] = c;
    void *p = malloc(n * 1000 + 1);
    CHECK(p);
    free(kept);
    kept = p;
    for (size_t i = 1; i < 40; i++)
        free(malloc(i * i * 20));
    free(calloc(1, 300000));
}

static void prepare_1(void) { note('a'); }
static void parent_1(void) { note('b'); }
static void child_1(void) { note('c'); }
static void prepare_2(void) { note('A'); }
static void parent_2(void) { note('B'); }
static void child_2(void) { note('C'); }

static atomic_int stop;

static void *allocate_until_stopped(void *arg) {
    while (!atomic_load(&stop))
        for (size_t i = 1; i < 200; i++)
            free(malloc(i * i));
    return arg;
}

/* Runs before the library's constructor when the library is preloaded after this one; both orders
 * must work. */
__attribute__((constructor)) static void first_handlers(void) { pthread_atfork(prepare_1, parent_1, child_1); }

static void fork_handlers(void) {
    noting = 1;
    pthread_t threads[6];
    for (int i = 0; i < 6; i++)
        CHECK(pthread_create(&threads[i], NULL, allocate_until_stopped, NULL) == 0);
    void *opened = dlopen(library, RTLD_NOW);
    CHECK(opened);
    void (*log_to)(void (*)(char)) = (void (*)(void (*)(char)))dlsym(opened, "log_to");
    CHECK(log_to);
    log_to(note);
    pthread_atfork(prepare_2, parent_2, child_2);
    for (int i = 0; i < 60; i++) {
        memset(order, 0, sizeof order);
        pid_t child = fork();
        CHECK(child >= 0);
        /* x, y and z are the opened library's. */
        CHECK(strcmp(order, child ? "AxabyB" : "AxaczC") == 0);
        if (child == 0)
            _exit(4);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 4);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < 6; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* The ways to leave, while threads allocate; handlers of the exit allocate too. */
static void at_exit(void) {
    free(malloc(100000));
    free(malloc(40 * MIB));
    puts("left");
}

static void leave(int how) {
    pthread_t thread;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&thread, NULL, allocate_until_stopped, NULL) == 0);
    if (how == 0)
        exit(11);
    if (how == 1)
        quick_exit(11);
    if (how == 2)
        _exit(11);
    if (how == 3)
        abort();
    if (how == 4) {
        CHECK(daemon(1, 1) == 0);
        for (size_t i = 1; i < 300; i++)
            free(malloc(i * 100));
        exit(11);
    }
    pthread_exit(NULL); /* the threads go on; one of them ends the process */
}

static void *end_process(void *arg) {
    usleep(20000);
    exit(11);
    return arg;
}

static void leavings(void) {
    for (int i = 0; i < 48; i++) {
        int how = i % 6, status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            atexit(at_exit);
            at_quick_exit(at_exit);
            pthread_t thread;
            if (how == 5)
                CHECK(pthread_create(&thread, NULL, end_process, NULL) == 0);
            leave(how);
        }
        CHECK(waitpid(child, &status, 0) == child);
        if (how == 3)
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        else
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == (how == 4 ? 0 : 11));
    }
}

/* Threads that are cancelled while they allocate: malloc is no cancellation point, so every object
 * is whole. */
static void free_it(void *p) { free(p); }

static void *allocate_until_cancelled(void *arg) {
    for (volatile size_t i = 0;; i++) {
        void *p = malloc(i % 9000 + 1);
        pthread_cleanup_push(free_it, p);
        mark(p, i % 9000 + 1, 1);
        if (i % 50 == 0)
            pthread_testcancel();
        pthread_cleanup_pop(1);
    }
    return arg;
}

static void cancels(void) {
    size_t before = 0;
    for (int round = 0; round < 30; round++) {
        pthread_t threads[16];
        for (int i = 0; i < 16; i++)
            CHECK(pthread_create(&threads[i], NULL, allocate_until_cancelled, NULL) == 0);
        usleep(1000);
        for (int i = 0; i < 16; i++)
            CHECK(pthread_cancel(threads[i]) == 0);
        for (int i = 0; i < 16; i++) {
            void *result;
            CHECK(pthread_join(threads[i], &result) == 0 && result == PTHREAD_CANCELED);
        }
        if (round == 4)
            before = mallinfo2().uordblks;
    }
    malloc_trim(0);
    CHECK(mallinfo2().uordblks < before + 4 * MIB);
}

/* 64 threads that allocate, and children that allocate, free their parent's objects, and fork
 * again. Afterwards the parent has its objects as before. */
enum { STORM = 64, GIVEN = 200 };
static void *given[GIVEN];

static void use_all_sizes(unsigned seed, int rounds) {
    for (int i = 0; i < rounds; i++) {
        seed = seed * 1664525u + 1013904223u;
        size_t size = (seed >> 8) % 50 == 0 ? (seed >> 8) % 200000 : (seed >> 8) % 3000;
        unsigned char *p = malloc(size + 1);
        CHECK(p);
        p[0] = p[size] = (unsigned char)seed;
        free(p);
    }
}

static void *storm(void *arg) {
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        use_all_sizes((unsigned)(uintptr_t)arg + i, 100);
        usleep(1000); /* so that the one that forks gets its turn */
    }
    return arg;
}

static void be_child(int depth) {
    use_all_sizes((unsigned)depth, 2000);
    for (int i = 0; i < GIVEN; i++) {
        CHECK(is_marked(given[i], (size_t)i * 11 + 1, (unsigned)i, (size_t)i * 11 + 1));
        free(given[i]);
    }
    for (int i = 0; i < GIVEN; i++)
        mark(given[i] = malloc((size_t)i * 11 + 1), (size_t)i * 11 + 1, (unsigned)i);
}

static void wait_for(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A child, which forks again, so often. */
static void be_children(int depth) {
    be_child(depth);
    for (int i = 1; i <= depth; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child > 0) {
            wait_for(child);
            break;
        }
        be_child(i);
    }
    if (depth % 2)
        _exit(0);
    exit(0);
}

static void start_storm(pthread_t *threads) {
    atomic_store(&stop, 0);
    for (uintptr_t i = 0; i < STORM; i++)
        CHECK(pthread_create(&threads[i], NULL, storm, (void *)(i * 7919)) == 0);
}

static void end_storm(pthread_t *threads) {
    atomic_store(&stop, 1);
    for (int i = 0; i < STORM; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Threads that allocate and free hundreds of objects, so that a fork finds objects on their way to
 * slabs; each child uses as many caches as they had. */
enum { SWINGERS = 4, SWING = 700 };

static void *swing(void *arg) {
    void **objects = malloc(SWING * sizeof *objects);
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        size_t size = ((uintptr_t)arg + i % 40) * 16 + 1;
        for (int j = 0; j < SWING; j++)
            CHECK((objects[j] = malloc(size)));
        for (int j = 0; j < SWING; j++)
            free(objects[j]);
    }
    free(objects);
    return arg;
}

static void *use_many_sizes(void *arg) {
    for (size_t i = 0; i < 2000; i++) {
        unsigned char *p = malloc(i * 10 + 1);
        CHECK(p);
        memset(p, 1, i * 10 + 1);
        free(p);
    }
    return arg;
}

static void fork_swings(void) {
    pthread_t threads[SWINGERS];
    atomic_store(&stop, 0);
    for (uintptr_t i = 0; i < SWINGERS; i++)
        CHECK(pthread_create(&threads[i], NULL, swing, (void *)(i + 1)) == 0);
    int forks = rounds(60, 200);
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            pthread_t heirs[SWINGERS];
            use_many_sizes(NULL);
            for (int j = 0; j < SWINGERS; j++)
                CHECK(pthread_create(&heirs[j], NULL, use_many_sizes, NULL) == 0);
            for (int j = 0; j < SWINGERS; j++)
                CHECK(pthread_join(heirs[j], NULL) == 0);
            _exit(0);
        }
        wait_for(child);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < SWINGERS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void fork_storm(void) {
    for (int i = 0; i < GIVEN; i++)
        mark(given[i] = malloc((size_t)i * 11 + 1), (size_t)i * 11 + 1, (unsigned)i);
    pthread_t threads[STORM];
    /* The C library's memory for threads exists from their first use. */
    start_storm(threads);
    end_storm(threads);
    malloc_trim(0);
    size_t before = mallinfo2().uordblks;
    start_storm(threads);
    for (int i = 0; i < 60; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            be_children(i % 4);
        wait_for(child);
    }
    end_storm(threads);
    malloc_trim(0);
    size_t after = mallinfo2().uordblks;
    if (after > before + 64 * KIB) {
        fprintf(stderr, "in use before %zu, after %zu\n", before, after);
        _exit(1);
    }
}

int main(int argc, char **argv) {
    static const struct part parts[] = {
        {"destructors", destructors}, {"fork_handlers", fork_handlers}, {"leavings", leavings},
        {"cancels", cancels},         {"fork_storm", fork_storm},       {"fork_swings", fork_swings},
        {0},
    };
    library = argc > 2 ? argv[2] : NULL;
    return run_part(argc, argv, parts);
}

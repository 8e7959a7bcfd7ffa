/* Per-CPU caches under stress: many threads on few processors, moved and interrupted all the time,
 * frees by other threads, and caches flushed and the process forked meanwhile. Each object has its
 * owner's mark, checked when it is freed: this detects an object with two owners, and a write to a
 * free one.
 *
 * Also: the rseq area of the kernel and the C library before and after. */
#define _GNU_SOURCE
#include "check.h"
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

enum { THREADS = 32, HELD = 60, MAILBOXES = 256 };

static atomic_int stop;
static _Atomic(uint64_t *) mailboxes[MAILBOXES];
static atomic_ulong operations, passed_on, moves, interruptions;

static uint64_t *stamped(size_t size, uint64_t stamp) {
    size_t words = size / 8;
    uint64_t *p = malloc(size);
    CHECK(p && words >= 3);
    p[0] = words;
    for (size_t i = 1; i < words; i++)
        p[i] = stamp ^ (uint64_t)(uintptr_t)p ^ i;
    return p;
}

static void check_and_free(uint64_t *p) {
    if (!p)
        return;
    uint64_t first = p[1] ^ 1;
    for (size_t i = 1; i < p[0]; i++)
        CHECK(p[i] == (first ^ i));
    CHECK(p[0] >= 3 && p[0] <= 600);
    memset(p, 0x5a, p[0] * 8);
    free(p);
}

static uint64_t random_of(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void move_somewhere(uint64_t r) {
    cpu_set_t set;
    CPU_ZERO(&set);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    CPU_SET((int)(r % (uint64_t)(processors < 2 ? 1 : 2)), &set);
    if (sched_setaffinity(0, sizeof set, &set) == 0)
        atomic_fetch_add(&moves, 1);
}

static void *work(void *arg) {
    uint64_t state = 88172645463325252u + (uintptr_t)arg * 7919, *held[HELD] = {0};
    unsigned long done = 0;
    for (; !atomic_load_explicit(&stop, memory_order_relaxed); done++) {
        uint64_t r = random_of(&state);
        unsigned at = (unsigned)(r >> 8) % HELD;
        check_and_free(held[at]);
        held[at] = stamped(24 + (r >> 20) % 8 * ((r >> 24) % 16 ? 16 : 500), r);
        if ((r >> 40) % 4 == 0) {
            held[at] = atomic_exchange(&mailboxes[(r >> 44) % MAILBOXES], held[at]);
            atomic_fetch_add_explicit(&passed_on, 1, memory_order_relaxed);
        }
        if (r % 509 == 0)
            sched_yield();
        if (r % 1021 == 0)
            move_somewhere(r >> 30);
    }
    for (int i = 0; i < HELD; i++)
        check_and_free(held[i]);
    atomic_fetch_add(&operations, done);
    return NULL;
}

static void *empty_caches(void *arg) {
    while (!atomic_load(&stop)) {
        malloc_trim(0);
        usleep(300);
    }
    return arg;
}

static void count_interruption(int signal) {
    (void)signal;
    atomic_fetch_add(&interruptions, 1);
}

/* Threads that come, allocate a little and go. */
static void *come_and_go(void *arg) {
    for (uint64_t i = 1; i < 40; i++)
        check_and_free(stamped(24 + i * 8, i));
    return arg;
}

/* On a busy machine, a second may contain next to nothing. */
static int was_enough(int forks) { return passed_on > 250 && moves > 10 && interruptions > 10 && forks > 0; }

/* Runs for the given seconds, and until there was enough of everything. */
static void stress(void) {
    const char *seconds = getenv("SECONDS_OF_STRESS");
    time_t end = time(NULL) + (seconds ? atoi(seconds) : 4);
    struct sigaction action = {0};
    action.sa_handler = count_interruption;
    action.sa_flags = SA_RESTART;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && sigaction(SIGPROF, &action, NULL) == 0);
    struct itimerval often = {{0, 300}, {0, 300}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0 && setitimer(ITIMER_PROF, &often, NULL) == 0);
    pthread_t threads[THREADS], trimmer, guest;
    for (uintptr_t i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, work, (void *)(i + 1)) == 0);
    CHECK(pthread_create(&trimmer, NULL, empty_caches, NULL) == 0);
    int forks = 0;
    for (; time(NULL) < end || !was_enough(forks); forks++) {
        CHECK(pthread_create(&guest, NULL, come_and_go, NULL) == 0);
        CHECK(pthread_join(guest, NULL) == 0);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            /* Other threads' objects are copies here; free ones can be allocated. */
            for (uint64_t i = 1; i < 2000; i++)
                check_and_free(stamped(24 + i % 90 * 8, i));
            for (int i = 0; i < MAILBOXES; i++)
                check_and_free(atomic_exchange(&mailboxes[i], NULL));
            malloc_trim(0);
            _exit(0);
        }
        int status;
        pid_t waited;
        while ((waited = waitpid(child, &status, 0)) < 0 && errno == EINTR)
            ;
        CHECK(waited == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
        usleep(20000);
    }
    atomic_store(&stop, 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(pthread_join(trimmer, NULL) == 0);
    memset(&often, 0, sizeof often);
    setitimer(ITIMER_REAL, &often, NULL);
    setitimer(ITIMER_PROF, &often, NULL);
    for (int i = 0; i < MAILBOXES; i++)
        check_and_free(mailboxes[i]);
    printf("operations %lu passed_on %lu moves %lu interruptions %lu forks %d\n", operations, passed_on, moves,
           interruptions, forks);
    CHECK(operations > 1000 && was_enough(forks));
}

/* glibc's words about its registration; absent before 2.35. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));

struct area { uint32_t cpu_id_start, cpu_id; uint64_t section; uint32_t flags, rest[3]; };

/* Checks a thread's area around many requests: fields that the kernel did not write are unchanged.
 */
static void *look_at_area(void *arg) {
    if (!&__rseq_size || __rseq_size == 0) {
        puts("no area");
        return arg;
    }
    volatile struct area *area = (struct area *)((char *)__builtin_thread_pointer() + __rseq_offset);
    int sections = 0, same = 0;
    for (int i = 0; i < 20000; i++) {
        struct area before = *area;
        void *p[8];
        for (size_t j = 0; j < 8; j++)
            p[j] = malloc(j * 40 + 1);
        for (size_t j = 0; j < 8; j++)
            free(p[j]);
        struct area after = *area;
        CHECK(after.flags == before.flags);
        CHECK(after.cpu_id < 4096 && after.cpu_id_start < 4096);
        sections += after.section != 0;
        same += after.cpu_id == before.cpu_id && after.cpu_id_start == before.cpu_id_start
            && memcmp(after.rest, before.rest, sizeof after.rest) == 0;
    }
    printf("sections %d same %d\n", sections, same);
    CHECK(same > 19000);
    return arg;
}

static void area(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, look_at_area, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void threads(void) {
    pthread_t thread;
    for (int i = 0; i < 20; i++) {
        CHECK(pthread_create(&thread, NULL, come_and_go, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

int main(int argc, char **argv) {
    static const struct part parts[] = {{"stress", stress}, {"area", area}, {"threads", threads}, {0}};
    return run_part(argc, argv, parts);
}

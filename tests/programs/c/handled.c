/* Signal handlers that free by mistake, at random moments: objects of a size that the program
 * allocates and frees, each once. If an earlier size left its slabs nearly empty, these are on
 * slabs of two sizes. */
#include "check.h"
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>

enum { OLD = 112, NEW = 300, OBJECTS = 60000, SIGNALS = 4000 };
static void *objects[OBJECTS];
static volatile sig_atomic_t signals;
static void (*in_handler)(int);

static void handle(int signal) {
    (void)signal;
    if (signals < OBJECTS / 2)
        in_handler(signals);
    signals++;
}

static void frees(int i) { free(objects[i]); }
static void grows(int i) { objects[i] = realloc(objects[i], 700); }
static void asks(int i) {
    size_t size = malloc_usable_size(objects[i]);
    CHECK(size >= NEW || size == 0);
}

/* Nine of ten objects of the old size go. */
static void thin(void) {
    enum { MANY = (32 << 20) / OLD };
    static void *old[MANY];
    for (int i = 0; i < MANY; i++)
        CHECK((old[i] = malloc(OLD)));
    for (int i = 0; i < MANY; i++)
        if (i % 10)
            free(old[i]);
}

static void run(void (*handler)(int), void (*use)(void **)) {
    struct sigaction action = {.sa_handler = handle, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    unsigned state = 3;
    for (int i = 0; i < OBJECTS; i++)
        CHECK((objects[i] = malloc(NEW)));
    in_handler = handler;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (signals < SIGNALS)
        use(&objects[OBJECTS / 2 + (state = state * 1664525u + 1013904223u) / 65536 % (OBJECTS / 2)]);
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

static void renew(void **object) {
    free(*object);
    CHECK((*object = malloc(NEW)));
}

static void resize(void **object) { CHECK((*object = realloc(*object, NEW - (size_t)((uintptr_t)object / 8 % 20)))); }

static void measure(void **object) { CHECK(malloc_usable_size(*object) >= NEW - 20); }

static void frees_while_renewed(void) { run(frees, renew); }
static void frees_on_two_sizes(void) { thin(), run(frees, renew); }
static void frees_while_resized(void) { thin(), run(frees, resize); }
static void frees_while_measured(void) { thin(), run(frees, measure); }
static void grows_while_renewed(void) { thin(), run(grows, renew); }
static void asks_while_renewed(void) { thin(), run(asks, renew); }

int main(int argc, char **argv) {
    static const struct part parts[] = {
        {"frees_while_renewed", frees_while_renewed}, {"frees_on_two_sizes", frees_on_two_sizes},
        {"frees_while_resized", frees_while_resized}, {"frees_while_measured", frees_while_measured},
        {"grows_while_renewed", grows_while_renewed}, {"asks_while_renewed", asks_while_renewed}, {0},
    };
    struct rlimit no_core = {0};
    CHECK(setrlimit(RLIMIT_CORE, &no_core) == 0);
    return run_part(argc, argv, parts);
}

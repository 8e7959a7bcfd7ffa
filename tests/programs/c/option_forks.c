/* Forks while another thread reads and sets options and statistics: the child can make the same
 * calls, and exits. */
#define _GNU_SOURCE
#include "check.h"
#include "../../../crates/preload/include/craton.h"
#include <pthread.h>
#include <sys/wait.h>

enum { FORKS = 300 };
static volatile int ends;

static void ask(void) {
    static _Thread_local char text[1 << 16];
    CHECK(craton_option_get("stats_file", text, sizeof text) >= 0);
    CHECK(craton_option_get("trace", text, sizeof text) >= 0);
    CHECK(craton_stats_json(text, sizeof text) > 0);
    CHECK(craton_option_set("trace_events", "1000") == 0);
}

static void *asker(void *arg) {
    while (!ends)
        ask();
    return arg;
}

int main(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, asker, NULL) == 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            alarm(20);
            ask();
            exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    ends = 1;
    CHECK(pthread_join(thread, NULL) == 0);
    return 0;
}

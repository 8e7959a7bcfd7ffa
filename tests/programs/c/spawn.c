/* Threads that start programs while all allocate: by posix_spawn, vfork and system, which run in
 * the parent's memory until the exec. */
#define _GNU_SOURCE
#include "check.h"
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

enum { THREADS = 6, STARTS = 40 };

extern char **environ;
static char *self;

static void reap(pid_t child, int expected) {
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}

static void *start_programs(void *arg) {
    for (int i = 0; i < STARTS; i++) {
        for (size_t j = 1; j < 300; j++)
            free(malloc(j * 40));
        pid_t child;
        char *args[] = {self, "child", NULL};
        CHECK(posix_spawn(&child, self, NULL, NULL, args, environ) == 0);
        reap(child, 5);
        child = vfork();
        CHECK(child >= 0);
        if (child == 0)
            _exit(7);
        reap(child, 7);
        int status = system("exit 3");
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3);
    }
    return arg;
}

int main(int argc, char **argv) {
    self = argv[0];
    if (argc > 1) { /* as the program that was started */
        void *p = malloc(1000);
        CHECK(p);
        free(p);
        return 5;
    }
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, start_programs, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}

/* A signal handler that forks during a fork. POSIX allows `fork` in handlers. */
#define _GNU_SOURCE
#include "check.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

static volatile sig_atomic_t in_handler, from_handler;

static void await(pid_t child) {
    int status;
    pid_t ended;
    while ((ended = waitpid(child, &status, 0)) < 0)
        CHECK(errno == EINTR);
    CHECK(ended == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void fork_again(int signal) {
    (void)signal;
    int saved = errno;
    if (!in_handler) {
        in_handler = 1;
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        await(child);
        from_handler++;
        in_handler = 0;
    }
    errno = saved;
}

int main(void) {
    free(malloc(100));
    signal(SIGALRM, fork_again);
    int forks = rounds(1400, 4000);
    for (int n = 0; n < forks; n++) {
        /* Late in some forks, early in others. */
        struct itimerval once = {{0, 0}, {0, 1 + n % 700}};
        setitimer(ITIMER_REAL, &once, NULL);
        pid_t child = fork();
        if (child == 0) {
            for (size_t size = 1; size < 4 * MIB; size *= 2)
                free(malloc(size));
            _exit(0);
        }
        await(child);
    }
    setitimer(ITIMER_REAL, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    CHECK(from_handler > forks / 50);
    return 0;
}

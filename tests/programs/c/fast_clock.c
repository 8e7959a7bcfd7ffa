/* A library whose clock runs sixty times as fast as the machine's, so that the allocator's minutes
 * are a test's seconds. Loaded after libcraton.so and before the C library, it answers their calls
 * for the clock and futexes. */
#include <errno.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>

enum { TIMES = 60 };
#define SECOND_NS 1000000000ll

static long system_call(long number, long a, long b, long c, long d, long e, long f) {
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

static long answer(long result) {
    if (result >= 0 || result < -4095)
        return result;
    errno = (int)-result;
    return -1;
}

static long long ns_of(const struct timespec *time) { return time->tv_sec * SECOND_NS + time->tv_nsec; }

static struct timespec time_of(long long ns) { return (struct timespec){ns / SECOND_NS, ns % SECOND_NS}; }

int clock_gettime(clockid_t clock, struct timespec *time) {
    long result = system_call(SYS_clock_gettime, clock, (long)time, 0, 0, 0, 0);
    if (result == 0 && (clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_COARSE))
        *time = time_of(ns_of(time) * TIMES);
    return (int)answer(result);
}

long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long args[6];
    for (int i = 0; i < 6; i++)
        args[i] = va_arg(list, long);
    va_end(list);
    struct timespec shorter;
    if (number == SYS_futex && (args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && args[3]) {
        shorter = time_of(ns_of((const struct timespec *)args[3]) / TIMES);
        args[3] = (long)&shorter;
    }
    return answer(system_call(number, args[0], args[1], args[2], args[3], args[4], args[5]));
}

/* What the first functions of craton.h do. */
#define _GNU_SOURCE
#include "check.h"
#include <craton.h>

static void statistics(void) {
    struct craton_segment before, after;
    craton_stats(&before);
    CHECK(before.magic == craton_segment.magic && before.version == craton_segment.version);
    CHECK(before.pid == (uint64_t)getpid() && before.refills > 0);
    void *large = malloc(MIB), *huge = malloc(64 * MIB), *small[1000];
    for (int i = 0; i < 1000; i++)
        CHECK((small[i] = malloc(500)));
    craton_stats(&after);
    CHECK(after.large_allocs == before.large_allocs + 1 && after.huge_allocs == before.huge_allocs + 1);
    CHECK(after.huge_bytes == before.huge_bytes + 64 * MIB && after.objects_out >= before.objects_out + 900);
    CHECK(after.heap_in_use_bytes >= before.heap_in_use_bytes + MIB + 900 * 500);
    CHECK(craton_segment.refills == after.refills && before.refills < after.refills);
    for (int i = 0; i < 1000; i++)
        free(small[i]);
    free(large);
    free(huge);
    CHECK(craton_segment.huge_bytes == before.huge_bytes);
}

/* The table for `craton core`; its first word is the magic one, in the order of this machine's bytes. */
extern const unsigned char craton_inspect[] __attribute__((weak));

static void version(void) {
    CHECK(craton_inspect && !memcmp(craton_inspect, "\0CRATONI", 8));
    int major = -1, minor = -1, end = 0;
    CHECK(sscanf(craton_version(), "%d.%d%n", &major, &minor, &end) == 2 && major >= 0 && minor >= 0 && end > 0);
}

static void options(void) {
    CHECK(craton_option_set("background", "0") == 0 && craton_option_set("thread_cache", "1M") == 0);
    errno = 0;
    CHECK(craton_option_set("thread_cache", "many") == -1 && errno == EINVAL);
    errno = 0;
    CHECK(craton_option_set("no_such_key", "1") == -1 && errno == EINVAL);
}

static void release(void) {
    CHECK(craton_option_set("background", "0") == 0);
    enum { MANY = 60 };
    char *p[MANY];
    for (int i = 0; i < MANY; i++) {
        CHECK((p[i] = malloc(MIB)));
        memset(p[i], 1, MIB);
    }
    size_t full = rss_kib();
    for (int i = 0; i < MANY; i++)
        free(p[i]);
    errno = 66;
    size_t gone = craton_release();
    /* Free hugepages beyond 16 MiB have gone before. */
    CHECK(gone >= 12 * MIB && gone <= MANY * MIB + 2 * MIB && errno == 66);
    CHECK(rss_kib() + 50 * 1024 <= full);
    CHECK(craton_release() < MIB);
    CHECK(craton_background_actions() == 0 || craton_background_actions() == 0);
    CHECK(craton_debug_check() == 0); /* nothing is under the kit */
}

static void called(void *argument, size_t limit, size_t used) {
    CHECK(limit < used);
    ++*(int *)argument;
}

static void callback(void) {
    int calls = 0;
    craton_set_limit_callback(called, &calls);
    CHECK(craton_option_set("soft_limit", "8M") == 0);
    char *p[40];
    for (int i = 0; i < 40; i++) {
        CHECK((p[i] = malloc(MIB)));
        memset(p[i], 1, MIB);
    }
    CHECK(calls > 0);
    craton_set_limit_callback(NULL, NULL);
    for (int i = 0; i < 40; i++)
        free(p[i]);
}

int main(int argc, char **argv) {
    static const struct part parts[] = {
        {"statistics", statistics}, {"version", version}, {"options", options},
        {"release", release},       {"callback", callback}, {0},
    };
    return run_part(argc, argv, parts);
}

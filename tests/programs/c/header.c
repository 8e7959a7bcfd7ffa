/* Tests the first functions of craton.h. */
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

#undef craton_stats
void craton_stats(uint64_t *into);

/* Programs that were compiled with the first header, which had 22 numbers, get only these. */
static void sizes(void) {
    enum { WORDS = sizeof(struct craton_segment) / 8, FIRST = 22 };
    uint64_t words[WORDS + 1];
    for (size_t room = 0; room <= sizeof words; room += 20) {
        memset(words, 0xee, sizeof words);
        CHECK(craton_stats_sized((struct craton_segment *)words, room) == 8 * WORDS);
        for (size_t i = 0; i <= WORDS; i++)
            CHECK((words[i] == 0xeeeeeeeeeeeeeeee) == (i >= room / 8 || i == WORDS));
    }
    memset(words, 0xee, sizeof words);
    craton_stats(words);
    CHECK(words[0] == craton_segment.magic && words[FIRST - 1] != 0xeeeeeeeeeeeeeeee);
    CHECK(words[FIRST] == 0xeeeeeeeeeeeeeeee);
}
#define craton_stats craton_stats_here

static uint64_t in_spans(const struct craton_segment *s) {
    return s->filler_dense_used_bytes + s->filler_sparse_used_bytes + s->region_used_bytes + s->large_span_bytes;
}

static uint64_t is_free(const struct craton_segment *s) {
    return s->filler_dense_free_bytes + s->filler_sparse_free_bytes + s->region_free_bytes + s->huge_cache_bytes;
}

/* The numbers of the page heap's components, which add up to the whole at every moment. */
static struct craton_segment components(void) {
    struct craton_segment s;
    craton_stats(&s);
    CHECK(in_spans(&s) == s.heap_in_use_bytes && in_spans(&s) + is_free(&s) == s.heap_backed_bytes);
    CHECK(s.heap_backed_bytes <= s.granted_bytes);
    uint64_t whole = s.whole_hugepages * 2 * MIB;
    CHECK(s.coverage_percent == (s.heap_backed_bytes ? 100 * whole / s.heap_backed_bytes : 0));
    CHECK(whole <= s.heap_backed_bytes);
    CHECK(s.released_background_bytes + s.released_limit_bytes <= s.released_bytes);
    return s;
}

static void *filled(size_t size) {
    void *object = malloc(size);
    CHECK(object);
    return memset(object, 1, size);
}

static void page_heap(void) {
    enum { SMALL = 200000, MIDDLE = 200, LONG = 4 };
    static void *small[SMALL], *middle[MIDDLE], *longer[LONG];
    CHECK(craton_option_set("background", "0") == 0);
    struct craton_segment before = components();
    for (int i = 0; i < SMALL; i++)
        small[i] = filled(200);
    for (int i = 0; i < MIDDLE; i++)
        middle[i] = filled(300 * KIB);
    for (int i = 0; i < LONG; i++)
        longer[i] = filled(9 * MIB);
    struct craton_segment full = components();
    CHECK(full.filler_dense_used_bytes + full.filler_sparse_used_bytes >= before.heap_in_use_bytes + 90 * MIB);
    CHECK(full.filler_dense_used_bytes >= 30 * MIB && full.filler_sparse_used_bytes >= 50 * MIB);
    CHECK(full.large_span_bytes + full.region_used_bytes >= 32 * MIB && full.granted_bytes >= 128 * MIB);

    /* Every other one: holes on hugepages that stay. */
    for (int i = 0; i < MIDDLE; i += 2)
        free(middle[i]);
    craton_release();
    struct craton_segment thin = components();
    CHECK(thin.broken_hugepages >= 10 && thin.broken_hugepages >= thin.guarded_hugepages);
    CHECK(thin.released_bytes >= full.released_bytes + 20 * MIB && is_free(&thin) < 2 * MIB);
    CHECK(thin.filler_sparse_used_bytes + 20 * MIB <= full.filler_sparse_used_bytes && thin.front_large_bytes == 0);

    for (int i = 1; i < MIDDLE; i += 2)
        free(middle[i]);
    for (int i = 0; i < SMALL; i++)
        free(small[i]);
    for (int i = 0; i < LONG; i++)
        free(longer[i]);
    /* A tick updates the segment's numbers, without a call for statistics. */
    const volatile struct craton_segment *live = &craton_segment;
    CHECK(live->large_span_bytes == thin.large_span_bytes && live->broken_hugepages == thin.broken_hugepages);
    craton_background_actions();
    CHECK(live->large_span_bytes == 0 && live->broken_hugepages < thin.broken_hugepages);
    craton_release();
    struct craton_segment empty = components();
    CHECK(empty.released_bytes >= thin.released_bytes + 60 * MIB && empty.huge_cache_bytes == 0);
    CHECK(empty.filler_dense_used_bytes < 10 * MIB && empty.complete_slab_bytes == 0);

    /* The document reads the system's page tables. */
    void *again = filled(9 * MIB);
    CHECK(craton_stats_json(NULL, 0) > 0);
    CHECK(live->resident_bytes == 0 || live->resident_bytes >= 9 * MIB);
    CHECK(live->resident_bytes <= live->heap_backed_bytes + 4 * MIB);
    CHECK(live->resident_huge_bytes <= live->resident_bytes);
    free(again);
}

/* The table for `craton core`; its first word is the magic one, in this machine's byte order. */
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

static void owns(void) {
    static char of_program[64];
    void *small = malloc(100), *large = malloc(MIB), *huge = malloc(100 * MIB);
    CHECK(craton_owns(small) == 1 && craton_owns(large) == 1 && craton_owns(huge) == 1);
    CHECK(craton_owns(NULL) == 0 && craton_owns(of_program) == 0 && craton_owns(&small) == 0);
    CHECK(craton_owns((void *)craton_owns) == 0 && craton_owns((void *)64) == 0);
    free(small);
    CHECK(craton_owns(small) == 1); /* it still may not go elsewhere */
    free(large);
    free(huge);
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

static void profile(void) {
    char path[64], name[64];
    sprintf(path, "/tmp/craton-header-%%p.profile");
    sprintf(name, "/tmp/craton-header-%d.profile", (int)getpid());
    errno = 77;
    CHECK(craton_profile_write(path) == 0 && errno == 77);
    char magic[8] = "";
    FILE *file = fopen(name, "r");
    CHECK(file && fread(magic, 1, 8, file) == 8 && !memcmp(magic, "\0CRATONP", 8));
    fclose(file);
    unlink(name);
    CHECK(craton_profile_write("/nonexistent/x") == -1 && errno == ENOENT);
    CHECK(craton_profile_write("") == -1 && errno == EINVAL);
    CHECK(craton_profile_write(NULL) == -1 && errno == EINVAL);
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
        {"statistics", statistics}, {"sizes", sizes}, {"page_heap", page_heap}, {"version", version}, {"options", options},
        {"owns", owns}, {"release", release},       {"callback", callback}, {"profile", profile}, {0},
    };
    return run_part(argc, argv, parts);
}

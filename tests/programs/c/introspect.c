/* glibc's functions that look into malloc or tune it. */
#define _GNU_SOURCE
#include "check.h"
#include <malloc.h>

enum { SMALL = 100000, LARGE = 40 };
static void *small[SMALL], *large[LARGE];

static void fill(void) {
    for (int i = 0; i < SMALL; i++)
        CHECK((small[i] = malloc(200)));
    for (int i = 0; i < LARGE; i++)
        CHECK((large[i] = malloc(MIB)));
}

static void empty(void) {
    for (int i = 0; i < SMALL; i++)
        free(small[i]);
    for (int i = 0; i < LARGE; i++)
        free(large[i]);
}

static void info_follows(void) {
    const size_t asked = SMALL * 200ul + LARGE * MIB;
    struct mallinfo2 before = mallinfo2();
    fill();
    void *huge = malloc(100 * MIB);
    struct mallinfo2 full = mallinfo2();
    CHECK(full.uordblks >= before.uordblks + asked + 100 * MIB);
    CHECK(full.uordblks <= before.uordblks + asked + asked / 4 + 101 * MIB);
    CHECK(full.hblkhd >= before.hblkhd + 100 * MIB && full.hblkhd < before.hblkhd + 104 * MIB);
    CHECK(full.arena >= before.arena + asked / 2);
    CHECK(full.arena + full.hblkhd >= full.uordblks);
    CHECK(full.fordblks + full.uordblks == full.arena + full.hblkhd);
    free(huge);
    CHECK(mallinfo2().hblkhd == before.hblkhd);
    empty();
    struct mallinfo2 after = mallinfo2();
    CHECK(after.uordblks <= before.uordblks + 4 * MIB);
}

static void old_info_saturates(void) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct mallinfo old = mallinfo();
    struct mallinfo2 now = mallinfo2();
    CHECK(old.uordblks >= 0 && (size_t)old.uordblks <= now.uordblks + MIB);
    void *huge = malloc(3 * GIB);
    if (huge) { /* address space only */
        old = mallinfo();
        CHECK(old.hblkhd == INT32_MAX);
        CHECK(mallinfo2().hblkhd >= 3 * GIB);
    }
    free(huge);
    CHECK(mallinfo().hblkhd < INT32_MAX);
#pragma GCC diagnostic pop
}

static void trim_gives_back(void) {
    fill();
    for (int i = 0; i < SMALL; i++)
        memset(small[i], 1, 200);
    for (int i = 0; i < LARGE; i++)
        memset(large[i], 1, MIB);
    size_t full = rss_kib();
    empty();
    /* Something was free, if not given back already. */
    malloc_trim(0);
    CHECK(rss_kib() + 50 * 1024 <= full);
    CHECK(malloc_trim(0) == 0);
    fill();
    empty();
}

static void options_of_glibc(void) {
    CHECK(mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1);
    CHECK(mallopt(M_TRIM_THRESHOLD, 1 << 20) == 1);
    CHECK(mallopt(M_TOP_PAD, 0) == 1);
    CHECK(mallopt(M_MMAP_MAX, 0) == 1);
    CHECK(mallopt(M_ARENA_MAX, 1) == 1);
    CHECK(mallopt(M_PERTURB, 0) == 1);
    CHECK(mallopt(M_MXFAST, 64) == 1);
    CHECK(mallopt(12345, 0) == 0);
    void *p = malloc(2 << 20);
    CHECK(p);
    free(p);
}

static void info_as_xml(void) {
    fill();
    CHECK(malloc_info(1, stdout) == EINVAL);
    /* A stream whose buffer comes from malloc itself. */
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    CHECK(stream && malloc_info(0, stream) == 0);
    fclose(stream);
    CHECK(text && length > 0 && fwrite(text, 1, length, stdout) == length);
    free(text);
    empty();
}

static void stats_as_text(void) {
    fill();
    malloc_stats();
    empty();
}

static const struct part PARTS[] = {
    {"info_follows", info_follows},
    {"old_info_saturates", old_info_saturates},
    {"trim_gives_back", trim_gives_back},
    {"options_of_glibc", options_of_glibc},
    {"info_as_xml", info_as_xml},
    {"stats_as_text", stats_as_text},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

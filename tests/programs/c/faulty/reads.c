/* Reads beside buffers and in freed ones. No value that they read is used as an address. */
#include "faulty.h"

static void reads(void *p, ptrdiff_t offset) {
    CHECK(read_byte(p, offset) != 1);
    give_up(p);
}

/* Adds up `n` bytes, one after the other. */
APART int sum_of(const char *p, size_t n) {
    int sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ((const volatile char *)p)[i];
    STAY;
    return sum;
}

APART void copy_of(char *to, const char *from, size_t n) {
    memcpy(to, from, n);
    STAY;
}

static void *reads_past_elsewhere(void *p) {
    CHECK(read_byte(p, 112) != 1);
    return NULL;
}

/* Closer than 16 bytes to either end. */
CASE(read_past_20) { reads(make_buffer(20), 20); }
CASE(read_past_13) { reads(make_buffer(13), 13); }
CASE(read_past_1) { reads(make_buffer(1), 1); }
CASE(read_past_numbers_of_5) {
    int *numbers = make_buffer(5 * sizeof *numbers);
    CHECK(((volatile int *)numbers)[5] != 12345);
    give_up(numbers);
}
CASE(read_before_24) { reads(make_buffer(24), -1); }
CASE(read_before_16) { reads(make_buffer(16), -1); }
CASE(read_word_before_100) {
    long *words = make_buffer(100);
    CHECK(((volatile long *)words)[-1] != 12345);
    give_up(words);
}
CASE(read_before_cleared) { reads(make_cleared(40), -1); }

/* From the next multiple of 16 on. */
CASE(read_past_48) { reads(make_buffer(48), 48); }
CASE(read_past_24_by_8) { reads(make_buffer(24), 32); }
CASE(read_past_aligned) { reads(make_aligned(64, 128), 128); }
CASE(read_past_cleared) { reads(make_cleared(160), 160); }
CASE(read_past_large) { reads(make_buffer(300000), 300000); }
CASE(read_past_huge) { reads(make_buffer(48 * MIB), 48 * MIB); }
CASE(read_past_grown) {
    char *p = realloc(malloc(10), 64);
    reads(show(p), 64);
}
CASE(read_past_by_a_page) { reads(make_buffer(64), 64 + 4096); }
CASE(read_before_a_page) { reads(make_buffer(4096), -1); }
CASE(read_before_large) { reads(make_buffer(304 * KIB), -1); }
CASE(read_far_before) { reads(make_buffer(64), -5000); }
CASE(read_past_by_a_thread) {
    char *p = make_buffer(100);
    elsewhere(reads_past_elsewhere, p);
    give_up(p);
}
CASE(read_each_past_end) {
    char *p = make_buffer(100);
    memset(p, 1, 100);
    CHECK(sum_of(p, 200) != 1);
    give_up(p);
}
CASE(copied_too_much) {
    char to[512], *p = make_buffer(256);
    copy_of(to, p, sizeof to);
    CHECK(to[300] != 1);
    give_up(p);
}
CASE(text_without_end) {
    char *p = make_buffer(64);
    memset(p, 'x', 64);
    CHECK(strlen(p) != 12345);
    give_up(p);
}

/* Of freed ones. */
CASE(read_freed_byte) {
    char *p = make_buffer(40);
    give_up(p);
    CHECK(read_byte(p, 5) != 1);
}
CASE(read_freed_huge_byte) {
    char *p = make_buffer(48 * MIB);
    give_up(p);
    CHECK(read_byte(p, 5) != 1);
}
CASE(read_moved) {
    char *p = make_buffer(40), *q = realloc(p, 4000);
    CHECK(q != p);
    CHECK(read_byte(p, 5) != 1);
}
CASE(copied_freed) {
    char to[64], *p = make_buffer(64);
    give_up(p);
    copy_of(to, p, sizeof to);
    CHECK(to[3] != 1);
}
CASE(length_of_freed_text) {
    char *p = show(strdup("a text that is freed"));
    give_up(p);
    CHECK(strlen(p) != 12345);
}
CASE(read_freed_after_10000) {
    char *p = make_buffer(40);
    give_up(p);
    others_come_and_go(10000, 40);
    CHECK(read_byte(p, 5) != 1);
}

static const struct part parts[] = {
    {"read_past_20", read_past_20},
    {"read_past_13", read_past_13},
    {"read_past_1", read_past_1},
    {"read_past_numbers_of_5", read_past_numbers_of_5},
    {"read_before_24", read_before_24},
    {"read_before_16", read_before_16},
    {"read_word_before_100", read_word_before_100},
    {"read_before_cleared", read_before_cleared},
    {"read_past_48", read_past_48},
    {"read_past_24_by_8", read_past_24_by_8},
    {"read_past_aligned", read_past_aligned},
    {"read_past_cleared", read_past_cleared},
    {"read_past_large", read_past_large},
    {"read_past_huge", read_past_huge},
    {"read_past_grown", read_past_grown},
    {"read_past_by_a_page", read_past_by_a_page},
    {"read_before_a_page", read_before_a_page},
    {"read_before_large", read_before_large},
    {"read_far_before", read_far_before},
    {"read_past_by_a_thread", read_past_by_a_thread},
    {"read_each_past_end", read_each_past_end},
    {"copied_too_much", copied_too_much},
    {"text_without_end", text_without_end},
    {"read_freed_byte", read_freed_byte},
    {"read_freed_huge_byte", read_freed_huge_byte},
    {"read_moved", read_moved},
    {"copied_freed", copied_freed},
    {"length_of_freed_text", length_of_freed_text},
    {"read_freed_after_10000", read_freed_after_10000},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, parts); }

/* Writes one byte, or more, past either end of a buffer. */
#include "faulty.h"

static void past(void *p, size_t size) {
    write_byte(p, (ptrdiff_t)size);
    give_up(p);
}

static void before(void *p) {
    write_byte(p, -1);
    give_up(p);
}

CASE(past_end_of_1) { past(make_buffer(1), 1); }
CASE(past_end_of_13) { past(make_buffer(13), 13); }
CASE(past_end_of_a_class) { past(make_buffer(48), 48); }
CASE(past_end_of_100) { past(make_buffer(100), 100); }
CASE(past_end_of_a_page) { past(make_buffer(4096), 4096); }
CASE(past_end_of_large) { past(make_buffer(300001), 300001); }
CASE(past_end_of_huge) { past(make_buffer(48 * MIB + 5), 48 * MIB + 5); }
CASE(past_end_of_aligned) { past(make_aligned(256, 100), 100); }
CASE(past_end_of_page_aligned) { past(make_aligned(4096, 5000), 5000); }
CASE(past_end_of_cleared) { past(make_cleared(57), 57); }

CASE(past_end_of_grown) {
    char *p = realloc(malloc(10), 70);
    past(show(p), 70);
}

CASE(past_end_of_shrunk) {
    char *p = realloc(malloc(400), 40);
    past(show(p), 40);
}

CASE(past_end_of_a_text) {
    char *p = show(strdup("seven b"));
    past(p, 8);
}

CASE(many_past_end) {
    char *p = make_buffer(24);
    memset(p, 'A', 30);
    give_up(p);
}

CASE(before_start_of_1) { before(make_buffer(1)); }
CASE(before_start_of_a_class) { before(make_buffer(64)); }
CASE(before_start_of_large) { before(make_buffer(300000)); }
CASE(before_start_of_huge) { before(make_buffer(48 * MIB)); }
CASE(before_start_of_aligned) { before(make_aligned(64, 64)); }
CASE(before_start_of_cleared) { before(make_cleared(33)); }

CASE(past_end_by_a_thread) {
    char *p = make_buffer(100);
    elsewhere(writes_past_elsewhere, p);
    give_up(p);
}

CASE(past_end_freed_by_a_thread) {
    char *p = make_buffer(100);
    write_byte(p, 100);
    elsewhere(gives_up_elsewhere, p);
}

CASE(past_end_of_a_threads) {
    union {
        size_t size;
        void *p;
    } made = {100};
    elsewhere(makes_elsewhere, &made);
    past(made.p, 100);
}

CASE(past_end_and_realloc) {
    char *p = make_buffer(100);
    write_byte(p, 100);
    p = realloc(p, 5000);
    STAY;
}

CASE(past_end_and_exit) {
    write_byte(make_buffer(100), 100);
    exit(0);
}

/* Before the heap's first buffer nothing is mapped. */
CASE(read_before_the_heap) {
    char *first = malloc(100);
    for (int i = 0; i < 3000; i++) {
        char *p = malloc(100);
        first = p < first ? p : first;
    }
    CHECK((uintptr_t)first % (1 << 12) == 16);
    read_byte(show(first), -17);
}

CASE(read_past_end) { CHECK(read_byte(make_buffer(4096), 4096) != 1); }

CASE(far_past_end) { CHECK(read_byte(make_buffer(100), 5100) != 1); }

CASE(in_the_tail_given_up) {
    char *p = malloc(64 * KIB);
    p = show(realloc(p, 40));
    write_byte(p, 6000);
}

/* The bytes that other kits fill redzones with. */
CASE(byte_of_the_redzone_past_end) {
    char *p = make_buffer(64);
    memset(p + 64, 0xfd, 8);
    free(p);
}

CASE(in_a_buffer_of_nothing) { past(make_buffer(0), 0); }
CASE(past_end_of_aligned_2m) { past(make_aligned(2 * MIB, 100), 100); }
CASE(past_end_by_30) {
    char *p = make_buffer(64);
    write_byte(p, 64 + 30);
    give_up(p);
}
CASE(past_end_by_a_page) {
    char *p = make_buffer(64);
    write_byte(p, 64 + 4096);
    give_up(p);
}
CASE(before_start_by_8) {
    char *p = make_buffer(24);
    write_byte(p, -8);
    give_up(p);
}
CASE(before_start_by_32) {
    char *p = make_buffer(24);
    write_byte(p, -32);
    give_up(p);
}
CASE(before_start_of_a_page) { before(make_buffer(4096)); }

APART void clear_all_of(void *p, size_t size) {
    memset(p, 0, size);
    STAY;
}

CASE(cleared_too_much) {
    char *p = make_buffer(40);
    clear_all_of(p, 48);
    give_up(p);
}

CASE(text_one_too_long) {
    char *p = make_buffer(16);
    strcpy(p, unknown("0123456789abcdef"));
    give_up(p);
}

CASE(text_added_too_long) {
    char *p = make_buffer(24);
    strcpy(p, "0123456789");
    strcat(p, unknown("0123456789abcdef"));
    give_up(p);
}

CASE(printed_too_long) {
    char *p = make_buffer(8);
    sprintf(p, "%s", unknown("12345678"));
    give_up(p);
}

CASE(one_turn_too_many) {
    int *numbers = make_buffer(10 * sizeof *numbers);
    for (int i = 0; i <= 10; i++)
        ((volatile int *)numbers)[i] = i;
    give_up(numbers);
}

/* By the system, for the program. */
CASE(read_from_a_file_too_much) {
    char *p = make_buffer(40);
    int file = open("/proc/self/maps", O_RDONLY);
    CHECK(file >= 0 && read(file, p, 48) == 48);
    give_up(p);
}

/* Zeros, and all ones: as a wrong length or -1 would leave. */
CASE(zero_past_end) {
    char *p = make_buffer(64);
    p[64] = 0;
    STAY;
    give_up(p);
}

CASE(ones_past_end) {
    char *p = make_buffer(40);
    memset(p + 40, 0xff, 4);
    STAY;
    give_up(p);
}

static const struct part parts[] = {
    {"past_end_of_1", past_end_of_1},
    {"past_end_of_13", past_end_of_13},
    {"past_end_of_a_class", past_end_of_a_class},
    {"past_end_of_100", past_end_of_100},
    {"past_end_of_a_page", past_end_of_a_page},
    {"past_end_of_large", past_end_of_large},
    {"past_end_of_huge", past_end_of_huge},
    {"past_end_of_aligned", past_end_of_aligned},
    {"past_end_of_page_aligned", past_end_of_page_aligned},
    {"past_end_of_cleared", past_end_of_cleared},
    {"past_end_of_grown", past_end_of_grown},
    {"past_end_of_shrunk", past_end_of_shrunk},
    {"past_end_of_a_text", past_end_of_a_text},
    {"many_past_end", many_past_end},
    {"before_start_of_1", before_start_of_1},
    {"before_start_of_a_class", before_start_of_a_class},
    {"before_start_of_large", before_start_of_large},
    {"before_start_of_huge", before_start_of_huge},
    {"before_start_of_aligned", before_start_of_aligned},
    {"before_start_of_cleared", before_start_of_cleared},
    {"past_end_by_a_thread", past_end_by_a_thread},
    {"past_end_freed_by_a_thread", past_end_freed_by_a_thread},
    {"past_end_of_a_threads", past_end_of_a_threads},
    {"past_end_and_realloc", past_end_and_realloc},
    {"past_end_and_exit", past_end_and_exit},
    {"read_past_end", read_past_end},
    {"read_before_the_heap", read_before_the_heap},
    {"far_past_end", far_past_end},
    {"in_the_tail_given_up", in_the_tail_given_up},
    {"byte_of_the_redzone_past_end", byte_of_the_redzone_past_end},
    {"in_a_buffer_of_nothing", in_a_buffer_of_nothing},
    {"past_end_of_aligned_2m", past_end_of_aligned_2m},
    {"past_end_by_30", past_end_by_30},
    {"past_end_by_a_page", past_end_by_a_page},
    {"before_start_by_8", before_start_by_8},
    {"before_start_by_32", before_start_by_32},
    {"before_start_of_a_page", before_start_of_a_page},
    {"cleared_too_much", cleared_too_much},
    {"text_one_too_long", text_one_too_long},
    {"text_added_too_long", text_added_too_long},
    {"printed_too_long", printed_too_long},
    {"one_turn_too_many", one_turn_too_many},
    {"read_from_a_file_too_much", read_from_a_file_too_much},
    {"zero_past_end", zero_past_end},
    {"ones_past_end", ones_past_end},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, parts); }

/* Passes a size or an alignment that a buffer does not have, or uses uninitialized bytes. */
#include "faulty.h"

extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

APART void give_up_sized(void *p, size_t size) {
    free_sized(p, size);
    STAY;
}

APART void give_up_aligned(void *p, size_t align, size_t size) {
    free_aligned_sized(p, align, size);
    STAY;
}

static void *gives_up_sized_elsewhere(void *p) {
    give_up_sized(p, 41);
    return NULL;
}

CASE(one_more) { give_up_sized(make_buffer(40), 41); }
CASE(one_less) { give_up_sized(make_buffer(40), 39); }
CASE(another_class) { give_up_sized(make_buffer(40), 4000); }
CASE(size_of_large) { give_up_sized(make_buffer(300000), 300001); }
CASE(size_by_a_thread) { elsewhere(gives_up_sized_elsewhere, make_buffer(40)); }
CASE(size_of_aligned) { give_up_aligned(make_aligned(64, 128), 64, 192); }
CASE(alignment_of_aligned) { give_up_aligned((show(aligned_alloc(64, 128))), 1 << 26, 128); }

CASE(never_written) { CHECK(next_number(make_buffer(sizeof(struct node))) != 12345); }

CASE(written_in_part) {
    struct node *node = make_buffer(sizeof *node);
    node->number = 1;
    CHECK(next_number(node) != 12345);
}

CASE(never_written_large) { CHECK(next_number(make_buffer(300000)) != 12345); }
CASE(called_never_written) { call_through(make_buffer(16)); }
CASE(never_written_by_a_thread) { elsewhere(reads_elsewhere, make_buffer(sizeof(struct node))); }

CASE(never_written_where_it_grew) {
    struct node *nodes = calloc(1, sizeof *nodes);
    nodes = show(realloc(nodes, 2 * sizeof *nodes));
    CHECK(next_number(nodes + 1) != 12345);
}

/* Found by no kit: what is read is used by a branch alone. */
CASE(branch_on_never_written) {
    char *p = make_buffer(40);
    if (read_byte(p, 8) == 1)
        puts("one");
    give_up(p);
}

static const struct part parts[] = {
    {"one_more", one_more},
    {"one_less", one_less},
    {"another_class", another_class},
    {"size_of_large", size_of_large},
    {"size_by_a_thread", size_by_a_thread},
    {"size_of_aligned", size_of_aligned},
    {"alignment_of_aligned", alignment_of_aligned},
    {"never_written", never_written},
    {"written_in_part", written_in_part},
    {"never_written_large", never_written_large},
    {"called_never_written", called_never_written},
    {"never_written_by_a_thread", never_written_by_a_thread},
    {"never_written_where_it_grew", never_written_where_it_grew},
    {"branch_on_never_written", branch_on_never_written},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, parts); }

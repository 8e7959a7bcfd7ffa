/* Uses buffers after they were freed, or frees what cannot be. */
#include "faulty.h"

static void write_freed(size_t size) {
    void *p = make_buffer(size);
    give_up(p);
    write_byte(p, 5);
    exit(0);
}

CASE(write_freed_small) { write_freed(40); }
CASE(write_freed_page) { write_freed(5000); }
CASE(write_freed_large) { write_freed(300000); }
CASE(write_freed_huge) { write_freed(48 * MIB); }

CASE(write_freed_later) {
    void *p = make_buffer(40);
    give_up(p);
    others_come_and_go(500, 40);
    write_byte(p, 5);
    exit(0);
}

/* So many others are freed that the buffer's memory serves again. */
CASE(write_freed_and_serve_again) {
    void *p = make_buffer(1000);
    give_up(p);
    write_byte(p, 5);
    others_come_and_go(200000, 1000);
    exit(0);
}

CASE(write_freed_by_a_thread) {
    void *p = make_buffer(40);
    give_up(p);
    elsewhere(writes_elsewhere, p);
    exit(0);
}

CASE(write_what_a_thread_freed) {
    void *p = make_buffer(40);
    elsewhere(gives_up_elsewhere, p);
    write_byte(p, 5);
    exit(0);
}

CASE(write_moved) {
    void *p = make_buffer(40);
    void *q = realloc(p, 4000);
    CHECK(q != p);
    write_byte(p, 5);
    exit(0);
}

CASE(read_freed) {
    struct node *node = make_buffer(sizeof *node);
    node->next = node;
    give_up(node);
    CHECK(next_number(node) != 12345);
}

CASE(read_freed_large) {
    struct node *node = make_buffer(300000);
    node->next = node;
    give_up(node);
    CHECK(next_number(node) != 12345);
}

CASE(read_freed_by_a_thread) {
    struct node *node = make_buffer(sizeof *node);
    node->next = node;
    give_up(node);
    elsewhere(reads_elsewhere, node);
}

CASE(call_freed) {
    void *object = make_buffer(16);
    give_up(object);
    call_through(object);
}

/* From the first fork on pages are closed in another way; what is out and what waits then goes on. */
static struct node *freed_after_forks(void) {
    CHECK(in_child(NULL, NULL) == 0);
    struct node *node = make_buffer(sizeof *node);
    node->next = node;
    others_come_and_go(3000, sizeof *node);
    CHECK(in_child(NULL, NULL) == 0);
    give_up(node);
    return node;
}

CASE(read_freed_after_a_fork) { CHECK(next_number(freed_after_forks()) != 12345); }

static void read_freed_in_child(void *node) { CHECK(next_number(node) != 12345); }
static void write_freed_in_child(void *p) {
    give_up(p);
    write_byte(p, 5);
}

CASE(read_freed_by_a_child) {
    if (in_child(read_freed_in_child, freed_after_forks()))
        abort();
}

CASE(write_freed_by_a_child) {
    if (in_child(write_freed_in_child, make_buffer(40)))
        abort();
}

CASE(realloc_freed) {
    void *p = make_buffer(40);
    give_up(p);
    p = realloc(p, 80);
    STAY;
}

CASE(ask_freed) {
    void *p = make_buffer(40);
    give_up(p);
    CHECK(malloc_usable_size(p) != 12345);
}

/* Twice. */
static void twice(void *p) {
    give_up(p);
    give_up(p);
}

CASE(twice_small) { twice(make_buffer(40)); }
CASE(twice_large) { twice(make_buffer(300000)); }
CASE(twice_huge) { twice(make_buffer(48 * MIB)); }
CASE(twice_aligned) { twice(make_aligned(4096, 100)); }
CASE(twice_cleared) { twice(make_cleared(200)); }

CASE(twice_with_others_between) {
    void *p = make_buffer(40);
    give_up(p);
    others_come_and_go(500, 40);
    give_up(p);
}

CASE(twice_once_by_a_thread) {
    void *p = make_buffer(40);
    elsewhere(gives_up_elsewhere, p);
    give_up(p);
}

CASE(twice_by_threads) {
    void *p = make_buffer(40);
    elsewhere(gives_up_elsewhere, p);
    elsewhere(gives_up_elsewhere, p);
}

CASE(free_moved) {
    void *p = make_buffer(40);
    void *q = realloc(p, 4000);
    CHECK(q != p);
    give_up(p);
}

/* Never a buffer. */
CASE(free_middle) { give_up((char *)make_buffer(160) + 16); }
CASE(free_middle_by_1) { give_up((char *)make_buffer(160) + 1); }
CASE(free_middle_of_large) { give_up((char *)make_buffer(300000) + 4096); }
CASE(free_middle_by_a_thread) { elsewhere(gives_up_elsewhere, (char *)make_buffer(160) + 32); }

CASE(realloc_middle) {
    char *p = realloc((char *)make_buffer(160) + 16, 200);
    CHECK(p != NULL);
}

CASE(free_stack) {
    char room[64];
    give_up(show(room));
}

static char global[64];
CASE(free_global) { give_up(show(global)); }

static const struct part parts[] = {
    {"write_freed_small", write_freed_small},
    {"write_freed_page", write_freed_page},
    {"write_freed_large", write_freed_large},
    {"write_freed_huge", write_freed_huge},
    {"write_freed_later", write_freed_later},
    {"write_freed_and_serve_again", write_freed_and_serve_again},
    {"write_freed_by_a_thread", write_freed_by_a_thread},
    {"write_what_a_thread_freed", write_what_a_thread_freed},
    {"write_moved", write_moved},
    {"read_freed", read_freed},
    {"read_freed_large", read_freed_large},
    {"read_freed_by_a_thread", read_freed_by_a_thread},
    {"call_freed", call_freed},
    {"read_freed_after_a_fork", read_freed_after_a_fork},
    {"read_freed_by_a_child", read_freed_by_a_child},
    {"write_freed_by_a_child", write_freed_by_a_child},
    {"realloc_freed", realloc_freed},
    {"ask_freed", ask_freed},
    {"twice_small", twice_small},
    {"twice_large", twice_large},
    {"twice_huge", twice_huge},
    {"twice_aligned", twice_aligned},
    {"twice_cleared", twice_cleared},
    {"twice_with_others_between", twice_with_others_between},
    {"twice_once_by_a_thread", twice_once_by_a_thread},
    {"twice_by_threads", twice_by_threads},
    {"free_moved", free_moved},
    {"free_middle", free_middle},
    {"free_middle_by_1", free_middle_by_1},
    {"free_middle_of_large", free_middle_of_large},
    {"free_middle_by_a_thread", free_middle_by_a_thread},
    {"realloc_middle", realloc_middle},
    {"free_stack", free_stack},
    {"free_global", free_global},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, parts); }

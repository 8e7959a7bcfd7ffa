/* Uses buffers after they were freed, or frees what cannot be. */
#include "faulty.h"
#include <sys/mman.h>

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

/* Frees enough others that the buffer's memory is reused. */
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

/* After the first fork, pages are closed in another way; live and waiting buffers go on. */
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

/* All of it. */
CASE(cleared_freed) {
    char *p = make_buffer(200);
    give_up(p);
    memset(p, 0, 200);
    STAY;
    exit(0);
}

CASE(write_freed_aligned) {
    char *p = make_aligned(256, 512);
    give_up(p);
    write_byte(p, 5);
    exit(0);
}

CASE(write_freed_last_byte) {
    char *p = make_buffer(48);
    give_up(p);
    write_byte(p, 47);
    exit(0);
}

CASE(twice_after_10000) {
    void *p = make_buffer(40);
    give_up(p);
    others_come_and_go(10000, 40);
    give_up(p);
}

static void twice_after(int n, size_t size, size_t of_others) {
    void *p = make_buffer(size);
    give_up(p);
    for (int i = 0; i < n; i++)
        free(unknown(malloc(of_others)));
    give_up(p);
}

CASE(twice_after_1000000) { twice_after(1000000, 40, 40); }
CASE(twice_after_1000000_others) { twice_after(1000000, 40, 200); }
CASE(twice_huge_after_50) { twice_after(50, 48 * MIB, 48 * MIB); }
CASE(twice_large_after_1000) { twice_after(1000, 300000, 300000); }

/* Its memory serves another buffer. */
CASE(twice_when_reused) {
    void *p = make_buffer(1000);
    give_up(p);
    void *others[2000];
    for (int i = 0; i < 2000; i++)
        others[i] = malloc(1000);
    give_up(p);
    CHECK(others[0] != others[1]);
}

static void give_up_in_child(void *p) { give_up(p); }

CASE(twice_in_a_child) {
    void *p = make_buffer(40);
    give_up(p);
    if (in_child(give_up_in_child, p))
        abort();
}

CASE(realloc_twice) {
    void *p = make_buffer(40);
    void *q = realloc(p, 400);
    CHECK(q != p);
    q = realloc(p, 800);
    STAY;
}

CASE(free_end) { give_up((char *)make_buffer(64) + 64); }
CASE(free_before) { give_up((char *)make_buffer(64) - 16); }
CASE(free_middle_of_huge) { give_up((char *)make_buffer(48 * MIB) + MIB); }
CASE(free_code) { give_up(show((void *)(uintptr_t)give_up)); }
CASE(free_constant) { give_up(show("a constant")); }
CASE(free_wild) { give_up(show((void *)(uintptr_t)0x123456789000)); }
CASE(free_small_number) { give_up(show((void *)(uintptr_t)32)); }

CASE(free_mapping) {
    void *p = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    give_up(show(p));
}

CASE(realloc_stack) {
    char room[64];
    void *p = realloc(show(room), 100);
    STAY;
    CHECK(p != room);
}

CASE(ask_middle) { CHECK(malloc_usable_size((char *)make_buffer(160) + 16) != 12345); }

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
    {"cleared_freed", cleared_freed},
    {"write_freed_aligned", write_freed_aligned},
    {"write_freed_last_byte", write_freed_last_byte},
    {"twice_after_10000", twice_after_10000},
    {"twice_after_1000000", twice_after_1000000},
    {"twice_after_1000000_others", twice_after_1000000_others},
    {"twice_huge_after_50", twice_huge_after_50},
    {"twice_large_after_1000", twice_large_after_1000},
    {"twice_when_reused", twice_when_reused},
    {"twice_in_a_child", twice_in_a_child},
    {"realloc_twice", realloc_twice},
    {"free_end", free_end},
    {"free_before", free_before},
    {"free_middle_of_huge", free_middle_of_huge},
    {"free_code", free_code},
    {"free_constant", free_constant},
    {"free_wild", free_wild},
    {"free_small_number", free_small_number},
    {"free_mapping", free_mapping},
    {"realloc_stack", realloc_stack},
    {"ask_middle", ask_middle},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, parts); }

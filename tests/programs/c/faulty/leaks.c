/* Loses buffers, or keeps them in hidden places. Prints the addresses of lost buffers, and those of
 * others behind a minus. */
#include "faulty.h"

/* Addresses that are printed and not kept: nothing on the stack or in a register leads to the
 * buffer. */
static void kept(void *p) {
    printf("-%p\n", p);
    fflush(stdout);
}

/* Writes the stack before and after, to clear old addresses. */
APART void clean_stack(void) {
    volatile char room[16384];
    for (size_t i = 0; i < sizeof room; i++)
        room[i] = 0;
}

APART void *make_kept(size_t size) {
    void *p = calloc(1, size);
    kept(p);
    return p;
}

struct link {
    struct link *next, *other;
    char *text;
};

APART void lose(void) { make_buffer(100); }
APART void lose_large(void) { make_buffer(300000); }
APART void lose_huge(void) { memset(make_buffer(48 * MIB), 0, 4096); }

/* Each leads to the other, and nothing to either: the report has one of them, with the other below.
 */
APART void lose_circle(void) {
    struct link *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
    a->next = b, b->next = a;
    printf("%p|%p\n", (void *)a, (void *)b);
    fflush(stdout);
}

/* The head of a list is lost, and with it the rest. */
APART void lose_list(void) {
    struct link *head = show(calloc(1, sizeof *head)), *last = head;
    for (int i = 0; i < 10; i++)
        last = last->next = calloc(1, sizeof *last);
}

static void *loses_elsewhere(void *unused) {
    lose();
    clean_stack();
    return unused;
}

/* Ends with the pointer on its stack, which the C library keeps for the next thread. */
static void *loses_on_its_stack(void *unused) {
    char *volatile room[64];
    room[32] = make_buffer(100);
    STAY;
    return room[32] ? unused : NULL;
}

static char *volatile place;
static __thread char *volatile own_place;
static pthread_barrier_t both;

APART void overwrite(void) {
    place = make_buffer(100);
    place = make_kept(100);
}

/* The struct goes back, and the only pointer with it. */
APART void lose_member(void) {
    struct link *a = calloc(1, sizeof *a);
    a->text = make_buffer(100);
    free(a);
}

APART void lose_aligned(void) { make_aligned(64, 200); }

/* A failed resize, and the only pointer is overwritten. */
APART void lose_by_realloc(void) {
    place = make_buffer(100);
    place = realloc(place, (size_t)1 << 60);
    CHECK(place == NULL);
}

APART void keep_by_the_end(void) { place = (char *)make_kept(100) + 100; }

APART void keep_in_global(void) { place = make_kept(100); }
APART void keep_by_the_middle(void) { place = (char *)make_kept(100) + 50; }

APART void keep_by_a_chain(void) {
    struct link *a = make_kept(sizeof *a);
    a->next = make_kept(sizeof *a);
    a->next->other = make_kept(300000);
    a->next->other->text = make_kept(10);
    place = (char *)a;
}

static void *keeps_in_own_place(void *unused) {
    own_place = make_kept(100);
    clean_stack();
    pthread_barrier_wait(&both);
    pause();
    return unused;
}

static void *keeps_on_its_stack(void *unused) {
    char *volatile here = make_kept(100);
    clean_stack();
    pthread_barrier_wait(&both);
    pause();
    return here ? unused : NULL;
}

APART void keep_elsewhere(void *(*run)(void *)) {
    pthread_t thread;
    CHECK(pthread_barrier_init(&both, NULL, 2) == 0);
    CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
    pthread_barrier_wait(&both);
}

CASE(lost) { lose(); }
CASE(lost_large) { lose_large(); }
CASE(lost_huge) { lose_huge(); }
CASE(lost_circle) { lose_circle(); }
CASE(lost_list) { lose_list(); }
CASE(lost_by_a_thread) { elsewhere(loses_elsewhere, NULL); }
CASE(lost_on_an_ended_stack) { elsewhere(loses_on_its_stack, NULL); }
CASE(overwritten) { overwrite(); }
CASE(lost_member) { lose_member(); }
CASE(lost_aligned) { lose_aligned(); }
CASE(lost_by_realloc) { lose_by_realloc(); }
CASE(kept_by_the_end) { keep_by_the_end(); }
CASE(kept_in_global) { keep_in_global(); }
CASE(kept_by_the_middle) { keep_by_the_middle(); }
CASE(kept_by_a_chain) { keep_by_a_chain(); }
CASE(kept_by_a_thread) { keep_elsewhere(keeps_in_own_place); }
CASE(kept_on_a_stack) { keep_elsewhere(keeps_on_its_stack); }

CASE(kept_here) {
    char *volatile here = make_kept(100);
    clean_stack();
    exit(here == NULL);
}

static const struct part parts[] = {
    {"lost", lost},
    {"lost_large", lost_large},
    {"lost_huge", lost_huge},
    {"lost_circle", lost_circle},
    {"lost_list", lost_list},
    {"lost_by_a_thread", lost_by_a_thread},
    {"lost_on_an_ended_stack", lost_on_an_ended_stack},
    {"overwritten", overwritten},
    {"kept_in_global", kept_in_global},
    {"kept_by_the_middle", kept_by_the_middle},
    {"kept_by_a_chain", kept_by_a_chain},
    {"kept_by_a_thread", kept_by_a_thread},
    {"kept_on_a_stack", kept_on_a_stack},
    {"kept_here", kept_here},
    {"lost_member", lost_member},
    {"lost_aligned", lost_aligned},
    {"lost_by_realloc", lost_by_realloc},
    {"kept_by_the_end", kept_by_the_end},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    /* The last loss: its address still lies on the stack that main leaves. */
    if (argc == 2 && strcmp(argv[1], "lost_last") == 0) {
        lose();
        return 0;
    }
    int status = run_part(argc, argv, parts);
    clean_stack();
    return status;
}

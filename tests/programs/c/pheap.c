/* The persistent heap for C: one part for each argument, on the file that follows. */
#define _GNU_SOURCE
#include <craton_pheap.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct node {
    craton_pptr next;
    uint64_t value;
};

enum { LIST = 7 }; /* the tag of roots of nodes */

#define REQUIRE(condition)                                                            \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

/* Calls, and ends the process unless the result is `wanted`. */
#define WANT(wanted, call)                                                            \
    do {                                                                              \
        int got_ = (call);                                                            \
        if (got_ != (wanted)) {                                                       \
            fprintf(stderr, "%s:%d: %s: %d (%s; %s), not %s\n", __FILE__, __LINE__,   \
                    #call, got_, craton_pheap_strerror(got_), craton_pheap_message(), \
                    #wanted);                                                         \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)
#define OK(call) WANT(CRATON_PHEAP_OK, call)

static const struct craton_pheap_options small = {.size = sizeof small, .limit = 256u << 20};

static struct node *node(craton_pheap *heap, craton_pptr at) { return craton_pheap_pointer(heap, at); }

static int fill(void *object, void *argument) {
    *(struct node *)object = *(struct node *)argument;
    return 0;
}

static int refuse(void *object, void *argument) {
    (void)object, (void)argument;
    return 5;
}

static void push(craton_pheap *heap, craton_pptr *list, uint64_t value) {
    struct node first = {*list, value};
    OK(craton_pheap_alloc_with(heap, list, sizeof first, fill, &first, NULL));
}

/* Values of a list from the first on, as text. */
static const char *text_of(craton_pheap *heap, craton_pptr at) {
    static char text[4096];
    size_t used = 0;
    text[0] = 0;
    for (; at && used < sizeof text - 32; at = node(heap, at)->next)
        used += (size_t)sprintf(text + used, "%lu ", (unsigned long)node(heap, at)->value);
    return text;
}

static struct craton_pheap_stats stats(craton_pheap *heap) {
    struct craton_pheap_stats found;
    OK(craton_pheap_stats(heap, &found, sizeof found));
    return found;
}

static void count_root(void *argument, const char *name, craton_pptr *slot, uint64_t tag) {
    (void)slot;
    *(int *)argument += !strcmp(name, "list") && tag == LIST ? 1 : 100;
}

static void basics(const char *path) {
    craton_pheap *heap;
    craton_pptr *list;
    struct node *first;
    size_t bytes;
    OK(craton_pheap_create(path, &small, &heap));
    REQUIRE(craton_pheap_promise(heap) == CRATON_PHEAP_PROCESS_CRASH);
    WANT(CRATON_PHEAP_NO_SYNC_POINTS, craton_pheap_sync(heap));
    OK(craton_pheap_add_root(heap, "list", LIST, &list));
    int roots = 0;
    OK(craton_pheap_each_root(heap, count_root, &roots));
    REQUIRE(roots == 1);

    OK(craton_pheap_alloc_to(heap, list, sizeof *first, (void **)&first));
    first->next = 0, first->value = 1;
    OK(craton_pheap_persist(heap, first, sizeof *first));
    REQUIRE(craton_pheap_offset(heap, first) == *list && node(heap, *list) == first);
    OK(craton_pheap_usable_size(heap, first, &bytes));
    REQUIRE(bytes >= sizeof *first && bytes < 64);
    push(heap, list, 2);
    push(heap, list, 3);
    REQUIRE(!strcmp(text_of(heap, *list), "3 2 1 "));
    WANT(CRATON_PHEAP_CANCELLED, craton_pheap_alloc_with(heap, list, 16, refuse, NULL, NULL));
    REQUIRE(!strcmp(text_of(heap, *list), "3 2 1 "));

    /* A larger object keeps its contents. */
    OK(craton_pheap_realloc(heap, list, 20000, (void **)&first));
    REQUIRE(first == node(heap, *list) && first->value == 3);
    memset(first + 1, 0xff, 20000 - sizeof *first);

    /* Reserved, replaced, cancelled. */
    void *other;
    OK(craton_pheap_reserve(heap, sizeof *first, &other));
    *(struct node *)other = (struct node){first->next, 33};
    OK(craton_pheap_replace(heap, list, other));
    REQUIRE(!strcmp(text_of(heap, *list), "33 2 1 "));
    OK(craton_pheap_reserve(heap, 100, &other));
    REQUIRE(stats(heap).reserved == 1);
    OK(craton_pheap_cancel(heap, other));
    REQUIRE(stats(heap).reserved == 0 && stats(heap).small == 3 && stats(heap).large == 0);

    /* One step: the first node goes, another follows the second. */
    struct node *new;
    OK(craton_pheap_reserve(heap, sizeof *new, (void **)&new));
    first = node(heap, *list);
    *new = (struct node){node(heap, first->next)->next, 15};
    struct craton_pheap_change changes[] = {
        {CRATON_PHEAP_PUBLISH, &node(heap, first->next)->next, new, 0},
        {CRATON_PHEAP_FREE, list, NULL, first->next},
    };
    OK(craton_pheap_batch(heap, changes, 2));
    REQUIRE(!strcmp(text_of(heap, *list), "2 15 1 "));

    /* Transactions: one is undone, one is not. */
    craton_pheap_tx *tx;
    for (int commits = 0; commits < 2; commits++) {
        OK(craton_pheap_begin(heap, &tx));
        first = node(heap, *list);
        OK(craton_pheap_tx_snapshot(tx, &first->value, sizeof first->value));
        first->value = 20;
        OK(craton_pheap_tx_free(tx, &first->next, node(heap, first->next)->next));
        if (commits) {
            OK(craton_pheap_commit(tx));
            REQUIRE(!strcmp(text_of(heap, *list), "20 1 "));
        } else {
            OK(craton_pheap_abort(tx));
            REQUIRE(!strcmp(text_of(heap, *list), "2 15 1 "));
        }
    }
    OK(craton_pheap_begin(heap, &tx));
    OK(craton_pheap_tx_alloc(tx, list, sizeof *new, (void **)&new));
    *new = (struct node){*list, 21};
    WANT(CRATON_PHEAP_BUSY, craton_pheap_close(heap));
    OK(craton_pheap_commit(tx));
    REQUIRE(!strcmp(text_of(heap, *list), "21 20 1 "));

    first = node(heap, *list);
    OK(craton_pheap_batch(heap, &(struct craton_pheap_change){CRATON_PHEAP_FREE, list, NULL, first->next}, 1));
    OK(craton_pheap_maintain(heap));
    OK(craton_pheap_check(heap));
    OK(craton_pheap_close(heap));

    struct craton_pheap_report report;
    OK(craton_pheap_open(path, &small, &heap));
    OK(craton_pheap_report(heap, &report, sizeof report));
    REQUIRE(report.clean && report.generation == 2 && stats(heap).small == 2);
    OK(craton_pheap_root(heap, "list", LIST, &list));
    REQUIRE(!strcmp(text_of(heap, *list), "20 1 "));
    while (*list) {
        craton_pptr next = node(heap, *list)->next;
        OK(craton_pheap_free_from(heap, list));
        OK(craton_pheap_set(heap, list, next));
    }
    OK(craton_pheap_remove_root(heap, "list"));
    OK(craton_pheap_close(heap));
}

/* The heap at another address than the last time. */
static void addresses(const char *path) {
    craton_pheap *heap;
    craton_pptr *list;
    OK(craton_pheap_create(path, &small, &heap));
    OK(craton_pheap_add_root(heap, "list", LIST, &list));
    for (uint64_t i = 1; i <= 5; i++) push(heap, list, i);
    char *before = (char *)craton_pheap_pointer(heap, 1) - 1;
    OK(craton_pheap_close(heap));
    /* Nothing else may be mapped there from now on. */
    void *taken = mmap(before, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    REQUIRE(taken == before);
    OK(craton_pheap_open(path, &small, &heap));
    REQUIRE((char *)craton_pheap_pointer(heap, 1) - 1 != before);
    OK(craton_pheap_root(heap, "list", LIST, &list));
    REQUIRE(!strcmp(text_of(heap, *list), "5 4 3 2 1 "));
    OK(craton_pheap_free_from(heap, &node(heap, node(heap, *list)->next)->next));
    REQUIRE(!strcmp(text_of(heap, *list), "5 4 "));
    OK(craton_pheap_check(heap));
    OK(craton_pheap_close(heap));
}

/* Sync points on a disk. */
static void syncs(const char *path) {
    struct craton_pheap_options options = small;
    options.durability = CRATON_PHEAP_SYNC_POINTS;
    craton_pheap *heap;
    craton_pptr *list;
    OK(craton_pheap_create(path, &options, &heap));
    REQUIRE(craton_pheap_promise(heap) == CRATON_PHEAP_POWER_FAILURE_AT_SYNC);
    OK(craton_pheap_add_root(heap, "list", LIST, &list));
    push(heap, list, 1);
    OK(craton_pheap_sync(heap));
    push(heap, list, 2);
    fflush(stdout);
    /* The process ends here; the next part finds the sync point. */
    kill(getpid(), SIGKILL);
}

static void synced(const char *path) {
    struct craton_pheap_options options = small;
    craton_pheap *heap;
    craton_pptr *list;
    WANT(CRATON_PHEAP_HAS_JOURNAL, craton_pheap_open(path, &options, &heap));
    options.durability = CRATON_PHEAP_SYNC_POINTS;
    OK(craton_pheap_open(path, &options, &heap));
    OK(craton_pheap_root(heap, "list", LIST, &list));
    REQUIRE(!strcmp(text_of(heap, *list), "1 "));
    OK(craton_pheap_check(heap));
    OK(craton_pheap_close(heap));
    options.durability = CRATON_PHEAP_AUTO;
    OK(craton_pheap_open(path, &options, &heap));
    OK(craton_pheap_close(heap));
}

static void write_file(const char *path, const void *bytes, size_t count, off_t at, off_t length) {
    int file = open(path, O_RDWR | O_CREAT, 0600);
    REQUIRE(file >= 0 && ftruncate(file, length) == 0);
    REQUIRE(pwrite(file, bytes, count, at) == (ssize_t)count && close(file) == 0);
}

/* Files that are no heap, and paths that are no file. */
static void bad_files(const char *path) {
    craton_pheap *heap = (craton_pheap *)1;
    struct craton_pheap_options options = small;
    char other[4096];
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_open(NULL, &small, &heap));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_open("", &small, &heap));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_create(path, &small, NULL));
    options.size = 8;
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_create(path, &options, &heap));
    options = small, options.durability = 4;
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_create(path, &options, &heap));
    options = small, options.lanes = 65;
    WANT(CRATON_PHEAP_CONFIG, craton_pheap_create(path, &options, &heap));
    REQUIRE(strstr(craton_pheap_message(), path) && strstr(craton_pheap_message(), "65 is not possible as the number of lanes"));
    options = small, options.most = 4096;
    WANT(CRATON_PHEAP_CONFIG, craton_pheap_create(path, &options, &heap));
    options = small, options.limit = 1ull << 60;
    WANT(CRATON_PHEAP_MISSING, craton_pheap_open(path, &options, &heap));
    sprintf(other, "%s/none", path);
    WANT(CRATON_PHEAP_MISSING, craton_pheap_create(other, &small, &heap));
    WANT(CRATON_PHEAP_NOT_A_FILE, craton_pheap_open("/", &small, &heap));
    WANT(CRATON_PHEAP_NOT_A_FILE, craton_pheap_open("/dev/null", &small, &heap));
    write_file(path, "short", 5, 0, 5);
    WANT(CRATON_PHEAP_LENGTH, craton_pheap_open(path, &small, &heap));
    WANT(CRATON_PHEAP_EXISTS, craton_pheap_create(path, &small, &heap));
    write_file(path, "text that is no heap", 20, 0, 1 << 20);
    WANT(CRATON_PHEAP_NOT_A_HEAP, craton_pheap_open_or_create(path, &small, &heap));
    REQUIRE(heap == (craton_pheap *)1 && unlink(path) == 0);

    OK(craton_pheap_create(path, &small, &heap));
    craton_pheap *second = NULL;
    WANT(CRATON_PHEAP_IN_USE, craton_pheap_open(path, &small, &second));
    REQUIRE(strstr(craton_pheap_message(), "craton_pheap_open") && second == NULL);
    OK(craton_pheap_close(heap));
    struct stat whole;
    REQUIRE(stat(path, &whole) == 0);
    char version;
    FILE *file = fopen(path, "rb");
    REQUIRE(file && fseek(file, 8, SEEK_SET) == 0 && fread(&version, 1, 1, file) == 1);
    REQUIRE(fclose(file) == 0);
    write_file(path, "\177", 1, 8, whole.st_size);
    WANT(CRATON_PHEAP_VERSION, craton_pheap_open(path, &small, &heap));
    write_file(path, &version, 1, 8, whole.st_size);
    write_file(path, "?", 1, 20, whole.st_size);
    WANT(CRATON_PHEAP_DAMAGED, craton_pheap_open(path, &small, &heap));
    OK(craton_pheap_close(NULL));
    REQUIRE(unlink(path) == 0);

    /* No room in the file system: the limit of the process stands for it. */
    struct rlimit limit = {1 << 20, RLIM_INFINITY};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    int status = craton_pheap_create(path, &small, &heap);
    REQUIRE(status == CRATON_PHEAP_FULL || status == CRATON_PHEAP_NO_MEMORY);
    REQUIRE(access(path, F_OK) != 0);
    limit.rlim_cur = 8 << 20;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    craton_pptr *list;
    OK(craton_pheap_create(path, &small, &heap));
    OK(craton_pheap_add_root(heap, "list", LIST, &list));
    uint64_t count = 0;
    for (status = 0; status == 0;) {
        struct node first = {*list, count};
        status = craton_pheap_alloc_with(heap, list, 100000, fill, &first, NULL);
        count += status == 0;
    }
    REQUIRE(status == CRATON_PHEAP_NO_MEMORY && count > 10 && stats(heap).large == count);
    OK(craton_pheap_check(heap));
    OK(craton_pheap_batch(heap, &(struct craton_pheap_change){CRATON_PHEAP_FREE, list, NULL, node(heap, *list)->next}, 1));
    push(heap, list, 1);
    OK(craton_pheap_close(heap));
}

/* Bad arguments of each call on an open heap: an error, and nothing has changed. */
static void bad_calls(const char *path) {
    struct craton_pheap_options options = small;
    options.lanes = 1;
    craton_pheap *heap;
    craton_pptr *list, *slot, here = 0;
    OK(craton_pheap_create(path, &options, &heap));
    OK(craton_pheap_add_root(heap, "list", LIST, &list));
    push(heap, list, 1);
    push(heap, list, 2);
    struct node *first = node(heap, *list);
    void *object = &here;
    /* Before the numbers: transactions keep a buffer. */
    craton_pheap_tx *tx, *second = NULL;
    OK(craton_pheap_begin(heap, &tx));
    OK(craton_pheap_tx_snapshot(tx, first, sizeof *first));
    struct craton_pheap_stats before = stats(heap);

    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_alloc_to(NULL, list, 16, &object));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_alloc_to(heap, NULL, 16, &object));
    WANT(CRATON_PHEAP_FOREIGN, craton_pheap_alloc_to(heap, &here, 16, &object));
    WANT(CRATON_PHEAP_NOT_A_SLOT, craton_pheap_alloc_to(heap, (void *)((char *)first + 4), 16, &object));
    WANT(CRATON_PHEAP_NOT_A_SLOT, craton_pheap_alloc_to(heap, list + 1, 16, &object));
    WANT(CRATON_PHEAP_NO_SIZE, craton_pheap_alloc_to(heap, list, 0, &object));
    WANT(CRATON_PHEAP_TOO_LARGE, craton_pheap_alloc_to(heap, list, SIZE_MAX, &object));
    WANT(CRATON_PHEAP_TOO_LARGE, craton_pheap_realloc(heap, list, (size_t)1 << 40, &object));
    WANT(CRATON_PHEAP_NO_SIZE, craton_pheap_realloc(heap, list, 0, &object));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_alloc_with(heap, list, 16, NULL, NULL, &object));
    WANT(CRATON_PHEAP_NO_SIZE, craton_pheap_alloc_with(heap, list, 0, fill, first, &object));
    REQUIRE(object == &here);

    WANT(CRATON_PHEAP_NULL, craton_pheap_free_from(heap, &node(heap, first->next)->next));
    WANT(CRATON_PHEAP_FOREIGN, craton_pheap_free_from(heap, &here));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_free_from(heap, NULL));
    WANT(CRATON_PHEAP_OUT_OF_RANGE, craton_pheap_set(heap, list, 1ull << 40));
    WANT(CRATON_PHEAP_FOREIGN, craton_pheap_set(heap, &here, 0));
    OK(craton_pheap_add_root(heap, "other", LIST, &slot));
    OK(craton_pheap_set(heap, slot, *list + 8));
    WANT(CRATON_PHEAP_NOT_AN_OBJECT, craton_pheap_free_from(heap, slot));
    REQUIRE(*slot == *list + 8 && strstr(craton_pheap_message(), "not the beginning of an object"));
    OK(craton_pheap_set(heap, slot, 0));

    /* Freed through one slot, freed again through another. */
    OK(craton_pheap_alloc_to(heap, slot, 16, NULL));
    craton_pptr *again, freed = *slot;
    OK(craton_pheap_add_root(heap, "again", LIST, &again));
    OK(craton_pheap_set(heap, again, freed));
    OK(craton_pheap_free_from(heap, slot));
    WANT(CRATON_PHEAP_ALREADY_FREE, craton_pheap_free_from(heap, again));
    REQUIRE(*again == freed);
    OK(craton_pheap_set(heap, again, 0));

    WANT(CRATON_PHEAP_NO_ROOT, craton_pheap_root(heap, "lost", LIST, &slot));
    WANT(CRATON_PHEAP_ROOT_TYPE, craton_pheap_root(heap, "list", 8, &slot));
    WANT(CRATON_PHEAP_ROOT_EXISTS, craton_pheap_add_root(heap, "list", LIST, &slot));
    WANT(CRATON_PHEAP_ROOT_IN_USE, craton_pheap_remove_root(heap, "list"));
    WANT(CRATON_PHEAP_ROOT_NAME, craton_pheap_add_root(heap, "", LIST, &slot));
    WANT(CRATON_PHEAP_ROOT_NAME, craton_pheap_add_root(heap, "forty bytes are one more than a name has.", 1, &slot));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_root(heap, NULL, LIST, &slot));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_each_root(heap, NULL, NULL));

    WANT(CRATON_PHEAP_FOREIGN, craton_pheap_persist(heap, &here, 8));
    WANT(CRATON_PHEAP_OUT_OF_RANGE, craton_pheap_persist(heap, first, SIZE_MAX / 2));
    WANT(CRATON_PHEAP_NOT_AN_OBJECT, craton_pheap_usable_size(heap, (char *)first + 8, NULL));
    WANT(CRATON_PHEAP_FOREIGN, craton_pheap_usable_size(heap, NULL, NULL));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_stats(heap, &before, 8));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_report(heap, NULL, sizeof(struct craton_pheap_report)));
    REQUIRE(!craton_pheap_pointer(heap, 0) && !craton_pheap_pointer(heap, 1ull << 50));
    REQUIRE(!craton_pheap_offset(heap, &here) && !craton_pheap_offset(heap, NULL));

    /* Reserved objects are published or cancelled once. */
    WANT(CRATON_PHEAP_NO_SIZE, craton_pheap_reserve(heap, 0, &object));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_reserve(heap, 16, NULL));
    WANT(CRATON_PHEAP_NOT_RESERVED, craton_pheap_publish(heap, list, first));
    WANT(CRATON_PHEAP_FOREIGN, craton_pheap_cancel(heap, &here));
    OK(craton_pheap_reserve(heap, 16, &object));
    OK(craton_pheap_cancel(heap, object));
    WANT(CRATON_PHEAP_NOT_RESERVED, craton_pheap_cancel(heap, object));
    WANT(CRATON_PHEAP_NOT_RESERVED, craton_pheap_replace(heap, list, object));
    OK(craton_pheap_reserve(heap, 16, &object));
    WANT(CRATON_PHEAP_FOREIGN, craton_pheap_publish(heap, &here, object));
    WANT(CRATON_PHEAP_NOT_RESERVED, craton_pheap_publish(heap, again, object)); /* it was given up */

    /* Batches: the first change is right in each. */
    const struct {
        int error;
        struct craton_pheap_change second;
    } refused[] = {
        {CRATON_PHEAP_TWICE, {CRATON_PHEAP_SET, again, NULL, 0}},
        {CRATON_PHEAP_NOT_RESERVED, {CRATON_PHEAP_PUBLISH, slot, first, 0}},
        {CRATON_PHEAP_ARGUMENT, {9, slot, NULL, 0}},
        {CRATON_PHEAP_FOREIGN, {CRATON_PHEAP_SET, &here, NULL, 0}},
        {CRATON_PHEAP_OUT_OF_RANGE, {CRATON_PHEAP_FREE, slot, NULL, 1ull << 40}},
        {CRATON_PHEAP_NOT_A_SLOT, {CRATON_PHEAP_SET, list + 1, NULL, 0}},
        {CRATON_PHEAP_NULL, {CRATON_PHEAP_FREE, slot, NULL, 0}},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        OK(craton_pheap_reserve(heap, 16, &object));
        struct craton_pheap_change changes[] = {{CRATON_PHEAP_PUBLISH, again, object, 0}, refused[i].second};
        WANT(refused[i].error, craton_pheap_batch(heap, changes, 2));
        REQUIRE(*again == 0 && *slot == 0 && stats(heap).reserved == 0);
    }
    OK(craton_pheap_reserve(heap, 16, &object));
    struct craton_pheap_change many[100] = {{CRATON_PHEAP_PUBLISH, again, object, 0}, {CRATON_PHEAP_PUBLISH, slot, object, 0}};
    WANT(CRATON_PHEAP_TWICE, craton_pheap_batch(heap, many, 2));
    WANT(CRATON_PHEAP_TOO_MANY, craton_pheap_batch(heap, many, 100));
    WANT(CRATON_PHEAP_TOO_MANY, craton_pheap_batch(heap, many, SIZE_MAX));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_batch(heap, NULL, 1));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_publish(heap, slot, NULL));
    WANT(CRATON_PHEAP_NO_ROOT, craton_pheap_root(heap, "no\nroot", 1, &slot));
    REQUIRE(strstr(craton_pheap_message(), "root \"no\\nroot\": there is no root of this name"));
    OK(craton_pheap_batch(heap, NULL, 0));
    REQUIRE(*again == 0 && *slot == 0 && stats(heap).reserved == 0);

    WANT(CRATON_PHEAP_TOO_MANY_TRANSACTIONS, craton_pheap_begin(heap, &second));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_begin(heap, NULL));
    WANT(CRATON_PHEAP_ARGUMENT, craton_pheap_commit(second));
    WANT(CRATON_PHEAP_FOREIGN, craton_pheap_tx_snapshot(tx, &here, 8));
    WANT(CRATON_PHEAP_OUT_OF_RANGE, craton_pheap_tx_snapshot(tx, list, 8));
    WANT(CRATON_PHEAP_NO_SIZE, craton_pheap_tx_alloc(tx, again, 0, NULL));
    first->value = 99;
    OK(craton_pheap_tx_free(tx, slot, 0));
    WANT(CRATON_PHEAP_BUSY, craton_pheap_close(heap));
    WANT(CRATON_PHEAP_NULL, craton_pheap_commit(tx)); /* the slot is empty: all is undone */

    REQUIRE(!strcmp(text_of(heap, *list), "2 1 "));
    struct craton_pheap_stats after = stats(heap);
    before.transactions = 0;
    REQUIRE(before.bytes == after.bytes && !memcmp(&before.small, &after.small, 6 * sizeof(uint64_t)));
    OK(craton_pheap_check(heap));
    OK(craton_pheap_close(heap));
}

/* Changes a list and a count until the process is killed; prints what is done. */
/* Each call of a forked child that would change the heap is refused. */
static void end_as_child(craton_pheap *heap, craton_pptr *list, craton_pheap_tx *tx, void *reserved) {
    struct node first = {0, 0};
    WANT(CRATON_PHEAP_FORKED, craton_pheap_alloc_with(heap, list, sizeof first, fill, &first, NULL));
    WANT(CRATON_PHEAP_FORKED, craton_pheap_free_from(heap, list));
    WANT(CRATON_PHEAP_FORKED, craton_pheap_add_root(heap, "child", 1, NULL));
    WANT(CRATON_PHEAP_FORKED, craton_pheap_maintain(heap));
    WANT(CRATON_PHEAP_FORKED, craton_pheap_sync(heap));
    WANT(CRATON_PHEAP_FORKED, craton_pheap_check(heap));
    WANT(CRATON_PHEAP_FORKED, craton_pheap_tx_snapshot(tx, node(heap, *list), 8));
    WANT(CRATON_PHEAP_BUSY, craton_pheap_close(heap));
    WANT(CRATON_PHEAP_FORKED, craton_pheap_cancel(heap, reserved));
    WANT(CRATON_PHEAP_FORKED, craton_pheap_abort(tx));
    WANT(CRATON_PHEAP_FORKED, craton_pheap_close(heap));
    _exit(0);
}

/* Forks with an open heap, and is killed with a transaction under way. */
static void fork_and_end(const char *path, const struct craton_pheap_options *options) {
    craton_pheap *heap;
    craton_pptr *list;
    craton_pheap_tx *tx;
    void *reserved;
    OK(craton_pheap_create(path, options, &heap));
    OK(craton_pheap_add_root(heap, "list", LIST, &list));
    for (uint64_t i = 0; i < 100; i++) push(heap, list, i);
    OK(craton_pheap_begin(heap, &tx));
    OK(craton_pheap_tx_snapshot(tx, node(heap, *list), sizeof(struct node)));
    node(heap, *list)->value = 1000;
    OK(craton_pheap_reserve(heap, 16, &reserved));
    pid_t child = fork();
    if (!child) end_as_child(heap, list, tx, reserved);
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    OK(craton_pheap_cancel(heap, reserved));
    OK(craton_pheap_abort(tx));
    REQUIRE(node(heap, *list)->value == 99);
    for (uint64_t i = 100; i < 300; i++) push(heap, list, i);
    if (options->durability == CRATON_PHEAP_SYNC_POINTS) OK(craton_pheap_sync(heap));
    OK(craton_pheap_begin(heap, &tx));
    OK(craton_pheap_tx_snapshot(tx, node(heap, *list), sizeof(struct node)));
    node(heap, *list)->value = 1000;
    kill(getpid(), SIGKILL);
}

static void forked(const char *path) {
    for (int model = CRATON_PHEAP_LOG; model <= CRATON_PHEAP_FRAMES; model++) {
        for (int i = 0; i < 3; i++) {
            struct craton_pheap_options options = small;
            options.model = model;
            options.most = 256u << 20;
            options.durability = i == 0 ? CRATON_PHEAP_AUTO : i == 1 ? CRATON_PHEAP_FLUSH : CRATON_PHEAP_SYNC_POINTS;
            pid_t child = fork();
            if (!child) fork_and_end(path, &options);
            int status;
            REQUIRE(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            craton_pheap *heap;
            craton_pptr *list;
            struct craton_pheap_report report;
            OK(craton_pheap_open(path, &options, &heap));
            OK(craton_pheap_report(heap, &report, sizeof report));
            REQUIRE(!report.clean && report.undone == (i < 2));
            OK(craton_pheap_check(heap));
            OK(craton_pheap_root(heap, "list", LIST, &list));
            uint64_t length = 0;
            for (craton_pptr at = *list; at; at = node(heap, at)->next) REQUIRE(node(heap, at)->value == 299 - length++);
            REQUIRE(length == 300 && stats(heap).small == 300);
            OK(craton_pheap_close(heap));
            REQUIRE(!unlink(path));
        }
    }
}

static void run(const char *path) {
    craton_pheap *heap;
    craton_pptr *list, *slot;
    OK(craton_pheap_open_or_create(path, &small, &heap));
    if (craton_pheap_root(heap, "list", LIST, &list)) OK(craton_pheap_add_root(heap, "list", LIST, &list));
    if (craton_pheap_root(heap, "count", 1, &slot)) OK(craton_pheap_add_root(heap, "count", 1, &slot));
    if (!*slot) {
        struct node zero = {0, 0};
        OK(craton_pheap_alloc_with(heap, slot, sizeof zero, fill, &zero, NULL));
    }
    uint64_t *count = &node(heap, *slot)->value;
    for (;;) {
        craton_pheap_tx *tx;
        struct node *first;
        OK(craton_pheap_begin(heap, &tx));
        if (*count % 3 == 2) {
            OK(craton_pheap_tx_free(tx, list, node(heap, *list)->next));
        } else {
            OK(craton_pheap_tx_alloc(tx, list, sizeof *first, (void **)&first));
            *first = (struct node){*list, *count};
        }
        OK(craton_pheap_tx_snapshot(tx, count, sizeof *count));
        ++*count;
        OK(craton_pheap_commit(tx));
        printf("%lu\n", (unsigned long)*count);
        fflush(stdout);
    }
}

/* Checks what `run` left; prints the count. */
static void verify(const char *path) {
    craton_pheap *heap;
    craton_pptr *list, *slot;
    struct craton_pheap_report report;
    OK(craton_pheap_open(path, &small, &heap));
    OK(craton_pheap_report(heap, &report, sizeof report));
    REQUIRE(!report.clean);
    OK(craton_pheap_check(heap));
    OK(craton_pheap_root(heap, "list", LIST, &list));
    OK(craton_pheap_root(heap, "count", 1, &slot));
    uint64_t count = node(heap, *slot)->value, length = 0;
    craton_pptr at = *list;
    /* Of each three, 3k and 3k + 1 were pushed and the second was popped. */
    for (uint64_t i = count; i-- > 0;) {
        if (i % 3 == 2 || (i % 3 == 1 && i + 1 < count)) continue;
        REQUIRE(at && node(heap, at)->value == i);
        at = node(heap, at)->next;
        length++;
    }
    REQUIRE(!at && stats(heap).small == length + 1);
    printf("%lu\n", (unsigned long)count);
    OK(craton_pheap_close(heap));
    /* As the killed process left it: not closed. */
    OK(craton_pheap_open(path, &small, &heap));
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*part)(const char *path);
    } parts[] = {{"basics", basics}, {"addresses", addresses}, {"syncs", syncs},   {"synced", synced},
                 {"bad_files", bad_files}, {"bad_calls", bad_calls}, {"forked", forked}, {"run", run}, {"verify", verify}};
    for (size_t i = 0; count == 3 && i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(parts[i].name, arguments[1])) continue;
        parts[i].part(arguments[2]);
        return 0;
    }
    fprintf(stderr, "usage: pheap PART FILE\n");
    return 2;
}

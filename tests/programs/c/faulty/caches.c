/* Does wrong to objects of caches. */
#include "faulty.h"
#include "../../../../crates/preload/include/craton.h"

struct named {
    struct node node;
    char name[24];
};

static int make_node(void *object, void *argument) {
    struct named *named = object;
    (void)argument;
    named->node.number = 1;
    named->node.next = &named->node;
    memset(named->name, 0, sizeof named->name);
    return 0;
}

/* The name is the program's to write. */
static int make_part_of_node(void *object, void *argument) {
    (void)argument;
    ((struct named *)object)->node.number = 1;
    return 0;
}

static craton_cache *cache_of(const char *name, int (*constructor)(void *, void *)) {
    struct craton_cache_options options = {
        .size = sizeof options, .name = name, .object_size = sizeof(struct named), .constructor = constructor};
    craton_cache *cache = craton_cache_create(&options);
    CHECK(cache != NULL);
    return cache;
}

static craton_cache *nodes, *others;

APART struct named *take_object(craton_cache *cache) {
    struct named *named = craton_cache_alloc(cache);
    CHECK(named != NULL);
    return show(named);
}

APART void give_back(craton_cache *cache, void *object) {
    craton_cache_free(cache, object);
    STAY;
}

static void *gives_back_elsewhere(void *object) {
    give_back(nodes, object);
    return NULL;
}

CASE(past_end_of_object) {
    struct named *named = take_object(nodes);
    write_byte(named, sizeof *named);
    give_back(nodes, named);
}

CASE(before_start_of_object) {
    struct named *named = take_object(nodes);
    write_byte(named, -1);
    give_back(nodes, named);
}

CASE(write_freed_object) {
    struct named *named = take_object(nodes);
    give_back(nodes, named);
    write_byte(named, 5);
    exit(0);
}

CASE(read_freed_object) {
    struct named *named = take_object(nodes);
    give_back(nodes, named);
    CHECK(next_number(&named->node) != 12345);
}

CASE(twice_object) {
    struct named *named = take_object(nodes);
    give_back(nodes, named);
    give_back(nodes, named);
}

CASE(twice_object_once_by_a_thread) {
    struct named *named = take_object(nodes);
    elsewhere(gives_back_elsewhere, named);
    give_back(nodes, named);
}

CASE(to_another_cache) { give_back(others, take_object(nodes)); }
CASE(object_to_a_heap) { craton_heap_free(craton_heap_create(NULL), take_object(nodes)); }
CASE(object_to_malloc) { give_up(take_object(nodes)); }
CASE(buffer_to_a_cache) { give_back(nodes, make_buffer(sizeof(struct named))); }
CASE(middle_of_object) { give_back(nodes, (char *)take_object(nodes) + 8); }

CASE(field_never_constructed) {
    craton_cache *cache = cache_of("in part", make_part_of_node);
    CHECK(next_number(&take_object(cache)->node) != 12345);
}

CASE(destroyed_with_objects_out) {
    take_object(nodes);
    CHECK(craton_cache_destroy(nodes) == -1 && errno == EBUSY);
    exit(0);
}

static const struct part parts[] = {
    {"past_end_of_object", past_end_of_object},
    {"before_start_of_object", before_start_of_object},
    {"write_freed_object", write_freed_object},
    {"read_freed_object", read_freed_object},
    {"twice_object", twice_object},
    {"twice_object_once_by_a_thread", twice_object_once_by_a_thread},
    {"to_another_cache", to_another_cache},
    {"object_to_a_heap", object_to_a_heap},
    {"object_to_malloc", object_to_malloc},
    {"buffer_to_a_cache", buffer_to_a_cache},
    {"middle_of_object", middle_of_object},
    {"field_never_constructed", field_never_constructed},
    {"destroyed_with_objects_out", destroyed_with_objects_out},
    {NULL, NULL},
};

int main(int argc, char **argv) {
    nodes = cache_of("nodes", make_node);
    others = cache_of("others", make_node);
    return run_part(argc, argv, parts);
}

/* The persistent heap for C++: one part for each argument, on the file that follows. */
#include <craton_pheap.hpp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>

#define REQUIRE(condition)                                                                \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);  \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

/* Calls `f`, which must throw this error. */
template <class F> static void refused(int code, F f) {
    try {
        f();
    } catch (const craton::pheap_error &error) {
        if (error.code() == code && *error.what()) return;
        std::fprintf(stderr, "%d, not %d: %s\n", error.code(), code, error.what());
        std::exit(1);
    }
    std::fprintf(stderr, "no error, not %d\n", code);
    std::exit(1);
}

struct node {
    craton::pptr<node> next;
    long value;
};

static int destroyed = 0;

/* With a constructor, a destructor and a tag. */
struct named {
    static constexpr std::uint64_t pheap_tag = 0x4e41;
    char text[16];
    explicit named(const char *from) {
        if (!*from) throw std::invalid_argument("no text");
        std::strncpy(text, from, sizeof text);
    }
    ~named() { destroyed++; }
};

static craton_pheap_options options() {
    auto wanted = craton::persistent_heap::zeros();
    wanted.limit = 256u << 20;
    return wanted;
}

static std::string text_of(craton::pptr<node> at) {
    std::string text;
    for (; at; at = at->next) text += std::to_string(at->value) + " ";
    return text;
}

static void basics(const char *path) {
    auto heap = craton::persistent_heap::create(path, options());
    auto &list = heap.add_root<node>("list");
    for (long i = 1; i <= 3; i++) heap.make(list, node{list, i});
    REQUIRE(text_of(list) == "3 2 1 ");

    {
        craton::transaction undone(heap);
        undone.change(list->value) = 30;
        undone.make(list->next, craton::pptr<node>(), 25L);
        REQUIRE(list->value == 30);
    }
    REQUIRE(text_of(list) == "3 2 1 ");
    craton::transaction tx(heap);
    tx.change(list->value) = 30;
    auto &made = tx.make(list->next, list->next, 25L);
    REQUIRE(made.value == 25);
    tx.commit();
    REQUIRE(text_of(list) == "30 25 2 1 ");

    craton::batch batch(heap);
    batch.free(list, list->next);
    batch.publish(list->next->next, heap.reserve<node>(list->next->next, 24L));
    batch.commit();
    REQUIRE(text_of(list) == "25 24 2 1 ");
    {
        craton::batch dropped(heap);
        dropped.publish(list, heap.reserve<node>());
    }
    REQUIRE(heap.stats().small == 4 && heap.stats().reserved == 0);
    heap.reserve<node>(list->next, 26L).replace(list);
    REQUIRE(text_of(list) == "26 24 2 1 ");

    auto &name = heap.add_root<named>("name");
    heap.make(name, "a name");
    REQUIRE(!std::strcmp(name->text, "a name"));
    try {
        heap.make(name, "");
        REQUIRE(false);
    } catch (const std::invalid_argument &) {
    }
    REQUIRE(!std::strcmp(name->text, "a name") && heap.stats().reserved == 0);
    heap.destroy(name);
    REQUIRE(destroyed == 1 && !name);

    refused(CRATON_PHEAP_NO_ROOT, [&] { heap.root<node>("lost"); });
    refused(CRATON_PHEAP_ROOT_TYPE, [&] { heap.root<node>("name"); });
    refused(CRATON_PHEAP_NULL, [&] { heap.destroy(name); });
    refused(CRATON_PHEAP_EXISTS, [&] {
        struct other {};
        craton::basic_persistent_heap<other>::create(path, options());
    });
    try {
        craton::persistent_heap second(path, options());
        REQUIRE(false);
    } catch (const std::logic_error &) {
    }
    craton::transaction open(heap);
    refused(CRATON_PHEAP_BUSY, [&] { heap.close(); });
    open.commit();
    heap.check();
    heap.close();
}

/* Two heaps at a time, each at another address than before. */
struct left {};
struct right {};
template <class Kind> struct item {
    craton::pptr<item, Kind> next;
    int value;
};

template <class Kind> static std::string values(craton::basic_persistent_heap<Kind> &heap) {
    std::string text;
    for (auto at = heap.template root<item<Kind>>("items"); at; at = at->next) text += std::to_string(at->value);
    return text;
}

static void addresses(const char *path) {
    const std::string other = std::string(path) + ".other";
    void *before;
    {
        craton::basic_persistent_heap<left> a(path, options());
        craton::basic_persistent_heap<right> b(other.c_str(), options());
        auto &as = a.root_or_add<item<left>>("items");
        auto &bs = b.root_or_add<item<right>>("items");
        for (int i = 0; i < 3; i++) {
            a.make(as, item<left>{as, i});
            b.make(bs, item<right>{bs, i + 5});
        }
        before = craton_pheap_pointer(a.get(), 4096);
    }
    /* The lower half of the address space of the first is taken. */
    REQUIRE(mmap(before, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == before);
    craton::basic_persistent_heap<right> b(other.c_str(), options());
    craton::basic_persistent_heap<left> a(path, options());
    REQUIRE(craton_pheap_pointer(a.get(), 4096) != before);
    REQUIRE(a.report().clean && values(a) == "210" && values(b) == "765");
    a.destroy(a.root<item<left>>("items")->next->next);
    REQUIRE(values(a) == "21");
    a.check();
    b.check();
}

int main(int count, char **arguments) {
    if (count == 3 && !std::strcmp(arguments[1], "basics")) return basics(arguments[2]), 0;
    if (count == 3 && !std::strcmp(arguments[1], "addresses")) return addresses(arguments[2]), 0;
    std::fprintf(stderr, "usage: pheap_cxx PART FILE\n");
    return 2;
}

/* craton::object_cache and craton::cache_resource. The first argument chooses a part. */
#include "../../../crates/preload/include/craton.hpp"
#include "check.h"
#include <atomic>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <vector>

static std::atomic<long> there;

struct counted {
    std::string name = "a name that does not fit into the string itself";
    int uses = 0;
    counted() { there++; }
    ~counted() { there--; }
};

static void objects() {
    {
        craton::object_cache<counted> cache("objects");
        for (int round = 0; round < 10; round++) {
            std::vector<craton::object_cache<counted>::pointer> out;
            for (int i = 0; i < 500; i++) {
                out.push_back(cache.make());
                /* Objects in another processor's array are not found from here. */
                CHECK(out.back()->uses++ <= round);
            }
        }
        CHECK(there >= 500 && there < 2500 && cache.stats().constructed == (uint64_t)there && cache.stats().in_use == 0);
        CHECK(cache.reap() > 0 && there == 0);
        counted *raw = cache.allocate();
        cache.deallocate(raw);
        cache.prefill(100);
        CHECK(there >= 100);
    }
    CHECK(there == 0);
}

struct refusal {
    int why;
};

static void exceptions() {
    int calls = 0;
    auto cache = craton::make_object_cache<counted>("exceptions", [&calls](void *at) {
        if (++calls % 2) throw refusal{calls};
        new (at) counted();
    });
    for (int i = 0; i < 100; i++) {
        int why = 0;
        try {
            cache.make();
        } catch (const refusal &r) {
            why = r.why;
        }
        CHECK(why == 2 * i + 1);
        auto object = cache.make();
        CHECK(object->uses == 0 && there == 1);
        object.reset();
        cache.reap();
    }
    CHECK(cache.stats().constructor_failures == 100 && cache.stats().in_use == 0 && there == 0);
    try {
        calls = 0;
        cache.prefill(10);
        CHECK(false);
    } catch (const refusal &) {
    }
}

static void bad() {
    const auto refused = [](std::string_view name, const craton::cache_options &options) {
        try {
            craton::object_cache<counted> cache(name, options);
            return false;
        } catch (const std::invalid_argument &) {
            return true;
        }
    };
    CHECK(refused("a name of thirty-two bytes, 12345", {}) && refused("no \xff UTF-8", {}) && refused(std::string_view("a\0b", 3), {}));
    craton::cache_options options;
    options.flags = 4;
    CHECK(refused("flags", options));
    options.flags = 0;
    options.align = 3 * alignof(counted);
    CHECK(refused("align", options));
    options.align = 4096;
    options.limit_objects = 2;
    craton::object_cache<counted> cache("zwei – größer", options);
    auto a = cache.make(), b = cache.make();
    CHECK(reinterpret_cast<std::uintptr_t>(a.get()) % 4096 == 0);
    for (int i = 0; i < 2; i++) {
        try {
            i ? cache.make_wait(5) : cache.make();
            CHECK(false);
        } catch (const std::bad_alloc &) {
        }
    }
    std::thread giver([&a] { a.reset(); });
    CHECK(cache.make_wait(60000));
    giver.join();
}

struct asks_itself {
    static craton::object_cache<asks_itself> *cache;
    asks_itself() { cache->make(); }
};
craton::object_cache<asks_itself> *asks_itself::cache;

static void recursion() {
    craton::object_cache<asks_itself> cache("recursion");
    asks_itself::cache = &cache;
    bool told = false;
    try {
        cache.make();
    } catch (const std::logic_error &) {
        told = true;
    }
    CHECK(told && cache.stats().in_use == 0);
}

static void resource() {
    craton::cache_resource caches("containers");
    {
        std::pmr::list<int> numbers(&caches);
        std::pmr::map<int, std::pmr::string> names(&caches);
        for (int i = 0; i < 10000; i++) {
            numbers.push_back(i);
            names.emplace(i, std::pmr::string(static_cast<std::size_t>(i % 6000), 'x'));
        }
        CHECK(numbers.size() == 10000 && names[5999].size() == 5999);
        struct craton_cache_stats counts = {};
        CHECK(craton_cache_stats(caches.cache_for(sizeof(int) + 2 * sizeof(void *)), &counts, sizeof counts) == 0);
        CHECK(counts.in_use >= 10000 && std::string(counts.name) == "containers-32");
        CHECK(!caches.cache_for(5000) && !caches.cache_for(1, 8192) && caches.cache_for(1, 4096));
    }
    for (std::size_t bytes = 1; bytes <= 4096; bytes *= 2) {
        struct craton_cache_stats counts = {};
        CHECK(craton_cache_stats(caches.cache_for(bytes), &counts, sizeof counts) == 0 && counts.in_use == 0);
    }
    craton::cache_resource unnamed;
    struct craton_cache_stats counts = {};
    CHECK(craton_cache_stats(unnamed.cache_for(16), &counts, sizeof counts) == 0 && std::string(counts.name) == "resource-16");
    CHECK(caches == caches && caches != *std::pmr::new_delete_resource());
}

static const struct part PARTS[] = {
    {"objects", objects}, {"exceptions", exceptions}, {"bad", bad}, {"recursion", recursion}, {"resource", resource}, {nullptr, nullptr},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

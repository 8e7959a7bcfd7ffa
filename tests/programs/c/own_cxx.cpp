/* craton.hpp, and the forms of operator new and delete with a size. The first argument chooses a
 * part. */
#include "../../../crates/preload/include/craton.hpp"
#include "check.h"
#include <list>
#include <malloc.h>
#include <map>
#include <string>
#include <thread>
#include <vector>

struct __sized_ptr_t {
    void *p;
    size_t n;
};
enum class __hot_cold_t : uint8_t {};
extern "C" {
__sized_ptr_t __size_returning_new(size_t);
__sized_ptr_t __size_returning_new_aligned(size_t, std::align_val_t);
__sized_ptr_t __size_returning_new_hot_cold(size_t, __hot_cold_t);
__sized_ptr_t __size_returning_new_aligned_hot_cold(size_t, std::align_val_t, __hot_cold_t);
}
void *operator new(size_t, __hot_cold_t);
void *operator new(size_t, const std::nothrow_t &, __hot_cold_t) noexcept;
void *operator new(size_t, std::align_val_t, __hot_cold_t);
void *operator new(size_t, std::align_val_t, const std::nothrow_t &, __hot_cold_t) noexcept;
void *operator new[](size_t, __hot_cold_t);
void *operator new[](size_t, const std::nothrow_t &, __hot_cold_t) noexcept;
void *operator new[](size_t, std::align_val_t, __hot_cold_t);
void *operator new[](size_t, std::align_val_t, const std::nothrow_t &, __hot_cold_t) noexcept;

static const __hot_cold_t COLD{0}, HOT{255};

static void expect(void *address) {
    printf("%p\n", address);
    fflush(stdout);
}

static void sizes() {
    for (size_t size = 0; size < 100000; size += 1 + size / 5) {
        __sized_ptr_t s = __size_returning_new(size);
        CHECK(s.p && s.n >= size && s.n == malloc_usable_size(s.p));
        memset(s.p, 1, s.n);
        operator delete(s.p, s.n);
        for (__hot_cold_t temperature : {COLD, HOT}) {
            s = __size_returning_new_hot_cold(size, temperature);
            CHECK(s.p && s.n == malloc_usable_size(s.p));
            operator delete(s.p, size);
            for (size_t align : {32, 4096, 1 << 22}) {
                std::align_val_t a{align};
                s = __size_returning_new_aligned_hot_cold(size, a, temperature);
                CHECK(s.p && s.n == malloc_usable_size(s.p) && (uintptr_t)s.p % align == 0);
                operator delete(s.p, s.n, a);
                s = __size_returning_new_aligned(size, a);
                CHECK(s.p && s.n == malloc_usable_size(s.p) && (uintptr_t)s.p % align == 0);
                operator delete(s.p, size, a);
                operator delete(operator new(size, a, temperature), a);
                operator delete(operator new(size, a, std::nothrow, temperature), size, a);
                operator delete[](operator new[](size, a, temperature), a, std::nothrow);
                operator delete[](operator new[](size, a, std::nothrow, temperature), size, a);
            }
            operator delete(operator new(size, temperature), size);
            operator delete(operator new(size, std::nothrow, temperature));
            operator delete[](operator new[](size, temperature), size);
            operator delete[](operator new[](size, std::nothrow, temperature), std::nothrow);
        }
    }
    int thrown = 0;
    const size_t much = (size_t)-1 / 4;
    try { __size_returning_new(much); } catch (const std::bad_alloc &) { thrown++; }
    try { __size_returning_new_aligned(much, std::align_val_t{64}); } catch (const std::bad_alloc &) { thrown++; }
    try { __size_returning_new_hot_cold(much, COLD); } catch (const std::bad_alloc &) { thrown++; }
    try { operator new(much, COLD); } catch (const std::bad_alloc &) { thrown++; }
    CHECK(thrown == 4 && !operator new(much, std::nothrow, COLD));
}

static size_t handled;

/* A new handler may find memory: the size is that of the second try. */
static void sizes_with_handler() {
    handled = 0;
    std::set_new_handler([] {
        handled++;
        if (handled == 3) std::set_new_handler(nullptr);
    });
    try {
        __size_returning_new((size_t)-1 / 4);
        CHECK(!"thrown");
    } catch (const std::bad_alloc &) {
    }
    CHECK(handled == 3);
}

static void resources() {
    craton::memory_resource resource("pmr"), other;
    CHECK(std::string(resource.stats().name) == "pmr");
    {
        std::pmr::vector<std::pmr::string> strings(&resource);
        for (int i = 0; i < 1000; i++)
            strings.emplace_back(std::string((size_t)i, 'x'));
        CHECK(resource.stats().objects > 900 && other.stats().objects == 0);
        CHECK(strings[999].get_allocator().resource() == &resource);
    }
    CHECK(resource.stats().objects == 0);
    CHECK(resource == resource && !(resource == other));
    struct alignas(256) wide { char bytes[256]; };
    std::pmr::vector<wide> wides(100, &resource);
    CHECK((uintptr_t)wides.data() % 256 == 0);
    /* A resource below one that gives nothing back: all goes with it. */
    auto *monotonic = new std::pmr::monotonic_buffer_resource(&resource);
    std::pmr::map<int, int> numbers(monotonic);
    for (int i = 0; i < 10000; i++)
        numbers[i] = i;
    CHECK(resource.stats().used_bytes > 10000 * 40);

    craton::memory_resource bounded("bounded", 1 << 20);
    bool thrown = false;
    try {
        std::pmr::list<std::pmr::string> endless(&bounded);
        for (;;)
            endless.emplace_back(10000, 'x');
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    CHECK(thrown && bounded.stats().refused > 0 && bounded.stats().objects == 0);
    try {
        craton::memory_resource bad("a name that is much too long to be the name of a heap");
        CHECK(!"refused");
    } catch (const std::invalid_argument &) {
    }
    try {
        craton::memory_resource bad("quoted \"name\"");
        CHECK(!"refused");
    } catch (const std::invalid_argument &) {
    }
}

static void allocators() {
    craton::heap heap("allocator", 0, CRATON_HEAP_APART);
    using strings = std::vector<std::string, craton::allocator<std::string>>;
    strings first{craton::allocator<std::string>(heap)};
    for (int i = 0; i < 100; i++)
        first.push_back(std::to_string(i));
    strings second = first, third = std::move(first);
    CHECK(second == third && heap.stats().objects == 2);
    std::map<int, int, std::less<>, craton::allocator<std::pair<const int, int>>> numbers{
        craton::allocator<std::pair<const int, int>>(heap)};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; t++)
        threads.emplace_back([&heap] {
            std::list<int, craton::allocator<int>> mine{craton::allocator<int>(heap)};
            for (int i = 0; i < 20000; i++)
                mine.push_back(i);
        });
    for (auto &thread : threads)
        thread.join();
    numbers[1] = 2;
    CHECK(heap.stats().objects == 3);
    craton::heap moved = std::move(heap);
    CHECK(moved.stats().objects == 3 && heap.get() == nullptr);
    heap = std::move(moved);
}

struct wide { char bytes[200]; };

static void wrong_size() {
    void *p = new wide;
    expect(p);
    operator delete(p, sizeof(int));
}

static void wrong_array_size() {
    void *p = new char[100];
    expect(p);
    operator delete[](p, 1000);
}

static void wrong_align() {
    char *p = new char[48];
    if ((uintptr_t)p % 4096 == 0) p = new char[48];
    expect(p);
    operator delete(p, std::align_val_t{4096});
}

static void wrong_aligned_size() {
    void *p = operator new(256, std::align_val_t{64});
    expect(p);
    operator delete(p, 64, std::align_val_t{64});
}

static const struct part PARTS[] = {
    {"sizes", sizes},
    {"sizes_with_handler", sizes_with_handler},
    {"resources", resources},
    {"allocators", allocators},
    {"wrong_size", wrong_size},
    {"wrong_array_size", wrong_array_size},
    {"wrong_align", wrong_align},
    {"wrong_aligned_size", wrong_aligned_size},
    {NULL, NULL},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

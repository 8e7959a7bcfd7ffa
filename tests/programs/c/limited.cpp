// operator new under a hard limit of 64 MiB: bad_alloc, a handler that frees, and null from
// nothrow.
#include <cstdio>
#include <cstdlib>
#include <new>
#include <vector>

#define CHECK(condition)                                                                                          \
    do {                                                                                                          \
        if (!(condition)) {                                                                                       \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                               \
            _Exit(1);                                                                                             \
        }                                                                                                         \
    } while (0)

static void *reserve;

static void give_up_reserve() {
    std::free(reserve);
    reserve = nullptr;
    std::set_new_handler(nullptr);
}

static std::size_t until_bad_alloc(std::size_t size) {
    static std::vector<char *> all;
    all.reserve(200000);
    std::size_t bytes = 0;
    try {
        for (;; bytes += size)
            all.push_back(new char[size]);
    } catch (const std::bad_alloc &) {
        CHECK(new (std::nothrow) char[8 << 20] == nullptr);
    }
    for (char *object : all)
        delete[] object;
    all.clear();
    return bytes;
}

int main() {
    for (std::size_t size : {1000, 40000, 1000000})
        CHECK(until_bad_alloc(size) > 40u << 20);
    reserve = std::malloc(32 << 20);
    CHECK(reserve);
    std::set_new_handler(give_up_reserve);
    // Calls, since the compiler may leave out an expression.
    ::operator delete(::operator new(50 << 20));
    CHECK(!reserve);
    try {
        ::operator delete(::operator new(100 << 20));
        CHECK(false);
    } catch (const std::bad_alloc &) {
    }
    CHECK(until_bad_alloc(5000) > 40u << 20);
}

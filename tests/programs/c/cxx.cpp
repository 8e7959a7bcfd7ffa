// C++'s operators new and delete in all forms, their failures, and the standard library on top of
// them.
#include "check.h"
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static volatile size_t too_large = size_t(PTRDIFF_MAX) - 4096;
static volatile size_t past_limit = size_t(PTRDIFF_MAX) + 1;

static bool aligned_to(void *p, size_t align) { return (reinterpret_cast<uintptr_t>(p) & (align - 1)) == 0; }

static void all_forms() {
    for (size_t n : {size_t(0), size_t(1), size_t(24), size_t(1000), size_t(100000), size_t(300000), size_t(40000000)}) {
        for (int round = 0; round < 3; round++) {
            errno = 44;
            void *p[] = {::operator new(n),   ::operator new(n, std::nothrow),
                         ::operator new(n),   ::operator new[](n),
                         ::operator new[](n), ::operator new[](n, std::nothrow)};
            for (void *q : p) {
                CHECK(q && aligned_to(q, 16));
                mark(q, n, 3);
            }
            for (void *q : p)
                CHECK(is_marked(q, n, 3, n));
            ::operator delete(p[0]);
            ::operator delete(p[1], std::nothrow);
            ::operator delete(p[2], n);
            ::operator delete[](p[3]);
            ::operator delete[](p[4], n);
            ::operator delete[](p[5], std::nothrow);
            for (size_t align : {size_t(1), size_t(8), size_t(64), size_t(4096), size_t(1) << 21, size_t(1) << 24}) {
                auto a = std::align_val_t(align);
                void *r[] = {::operator new(n, a),   ::operator new(n, a, std::nothrow),
                             ::operator new(n, a),   ::operator new[](n, a),
                             ::operator new[](n, a), ::operator new[](n, a, std::nothrow)};
                for (void *q : r) {
                    CHECK(q && aligned_to(q, align));
                    mark(q, n, 4);
                }
                for (void *q : r)
                    CHECK(is_marked(q, n, 4, n));
                ::operator delete(r[0], a);
                ::operator delete(r[1], a, std::nothrow);
                ::operator delete(r[2], n, a);
                ::operator delete[](r[3], a);
                ::operator delete[](r[4], n, a);
                ::operator delete[](r[5], a, std::nothrow);
            }
            CHECK(errno == 44);
        }
    }
    ::operator delete(nullptr);
    ::operator delete[](nullptr);
    ::operator delete(nullptr, size_t(8));
    ::operator delete(nullptr, std::align_val_t(64));
}

static int destroyed;

struct Witness {
    std::unique_ptr<std::string> text = std::make_unique<std::string>(100, 'x');
    ~Witness() { destroyed++; }
};

// Not inlined, so that the exception passes through real frames.
__attribute__((noinline)) static void *ask(const std::function<void *()> &how) {
    Witness here;
    void *p = how();
    CHECK(here.text->size() == 100);
    return p;
}

__attribute__((noinline)) static void *ask_deeper(const std::function<void *()> &how, int depth) {
    Witness here;
    void *p = depth ? ask_deeper(how, depth - 1) : ask(how);
    CHECK(here.text->size() == 100);
    return p;
}

static void throws_bad_alloc(const std::function<void *()> &how) {
    destroyed = 0;
    bool caught = false;
    try {
        ask_deeper(how, 5);
    } catch (const std::bad_alloc &e) {
        caught = true;
        CHECK(e.what());
    }
    CHECK(caught);
    CHECK(destroyed == 7);
}

static void bad_alloc() {
    auto a = std::align_val_t(256);
    for (int round = 0; round < 100; round++) {
        for (size_t n : {size_t(too_large), size_t(past_limit), SIZE_MAX}) {
            throws_bad_alloc([=] { return ::operator new(n); });
            throws_bad_alloc([=] { return ::operator new[](n); });
            throws_bad_alloc([=] { return ::operator new(n, a); });
            throws_bad_alloc([=] { return ::operator new[](n, a); });
        }
        throws_bad_alloc([=] { return new char[too_large]; });
    }
    bool length = false;
    try {
        std::vector<char> v;
        v.reserve(past_limit);
    } catch (const std::length_error &) {
        length = true;
    }
    CHECK(length);
    bool caught = false;
    try {
        std::string s;
        s.resize(s.max_size() - 1);
    } catch (const std::bad_alloc &) {
        caught = true;
    }
    CHECK(caught);
}

static void bad_alloc_in_threads() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([] {
            for (int j = 0; j < 500; j++) {
                bool caught = false;
                try {
                    Witness here;
                    ::operator delete(::operator new(too_large));
                } catch (const std::bad_alloc &) {
                    caught = true;
                }
                CHECK(caught);
            }
        });
    for (auto &t : threads)
        t.join();
}

static void nothrow() {
    auto a = std::align_val_t(4096);
    for (size_t n : {size_t(too_large), size_t(past_limit), SIZE_MAX}) {
        CHECK(::operator new(n, std::nothrow) == nullptr);
        CHECK(::operator new[](n, std::nothrow) == nullptr);
        CHECK(::operator new(n, a, std::nothrow) == nullptr);
        CHECK(::operator new[](n, a, std::nothrow) == nullptr);
    }
    CHECK(new (std::nothrow) char[too_large] == nullptr);
}

// The address space in pieces of 64 MiB, under a limit that the test sets.
static std::vector<void *> *hoard;
static int handled;

static void fill_hoard() {
    hoard = new std::vector<void *>;
    hoard->reserve(1 << 16);
    while (void *p = malloc(64 * MIB))
        hoard->push_back(p);
    CHECK(hoard->size() >= 4);
}

static void handler_that_frees() {
    handled++;
    CHECK(!hoard->empty());
    free(hoard->back());
    hoard->pop_back();
}

static void handler_frees_memory() {
    fill_hoard();
    std::set_new_handler(handler_that_frees);
    handled = 0;
    char *p = new char[150 * MIB];
    CHECK(p && handled >= 2);
    p[0] = p[150 * MIB - 1] = 1;
    delete[] p;
    // An aligned form, and a handler that gives up by taking itself out.
    while (void *q = malloc(64 * MIB))
        hoard->push_back(q);
    handled = 0;
    void *r = ::operator new(100 * MIB, std::align_val_t(4096));
    CHECK(r && handled >= 1);
    ::operator delete(r, std::align_val_t(4096));
    std::set_new_handler([] {
        handled++;
        std::set_new_handler(nullptr);
    });
    handled = 0;
    throws_bad_alloc([] { return ::operator new(too_large); });
    CHECK(handled == 1);
}

struct Mine {
    int number;
};

static void handler_throws() {
    std::set_new_handler([] { throw Mine{42}; });
    for (int round = 0; round < 100; round++) {
        destroyed = 0;
        int got = 0;
        try {
            ask_deeper([] { return ::operator new(too_large); }, 3);
        } catch (const Mine &mine) {
            got = mine.number;
        }
        CHECK(got == 42 && destroyed == 5);
    }
}

static void churn() {
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 8; t++)
        threads.emplace_back([t] {
            std::map<std::string, std::vector<std::string>> words;
            unsigned state = t + 1;
            for (int i = 0; i < 60000; i++) {
                state = state * 1664525 + 1013904223;
                auto key = std::to_string(state >> 20);
                auto &list = words[key];
                list.push_back(std::string(state % 700, char('a' + state % 26)));
                if (list.size() > 4)
                    words.erase(key);
            }
            for (auto &[key, list] : words)
                for (auto &s : list)
                    for (char c : s)
                        CHECK(c == s[0]);
        });
    for (auto &t : threads)
        t.join();
    std::vector<std::unique_ptr<std::vector<int>>> nested;
    for (int i = 0; i < 2000; i++) {
        nested.push_back(std::make_unique<std::vector<int>>());
        for (int j = 0; j < i; j++)
            nested.back()->push_back(j);
    }
    for (int i = 0; i < 2000; i++)
        for (int j = 0; j < i; j++)
            CHECK((*nested[size_t(i)])[size_t(j)] == j);
}

static const struct part PARTS[] = {
    {"all_forms", all_forms},
    {"bad_alloc", bad_alloc},
    {"bad_alloc_in_threads", bad_alloc_in_threads},
    {"nothrow", nothrow},
    {"handler_frees_memory", handler_frees_memory},
    {"handler_throws", handler_throws},
    {"churn", churn},
    {nullptr, nullptr},
};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

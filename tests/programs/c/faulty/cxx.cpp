// The mistakes that C++ adds.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#define APART __attribute__((noinline, noclone))
#define STAY __asm__ volatile("" ::: "memory")

template <typename T> static T *show(T *p) {
    std::printf("%p\n", static_cast<void *>(p));
    std::fflush(stdout);
    return p;
}

APART int *make_numbers(std::size_t n) {
    int *numbers = new int[n];
    STAY;
    return show(numbers);
}

APART void give_up_numbers(int *numbers) {
    delete[] numbers;
    STAY;
}

struct Base {
    long number = 1;
};

struct Derived : Base {
    long more[6] = {};
};

APART Base *make_object() {
    Base *object = new Derived;
    STAY;
    return show(object);
}

// Without a virtual destructor, delete passes the base's size.
APART void give_up_object(Base *object) {
    delete object;
    STAY;
}

APART void give_up_sized(void *p, std::size_t size) {
    ::operator delete(p, size);
    STAY;
}

static void past_end_of_array() {
    int *numbers = make_numbers(7);
    reinterpret_cast<volatile char *>(numbers)[28] = 'A';
    give_up_numbers(numbers);
}

static void before_start_of_array() {
    int *numbers = make_numbers(7);
    reinterpret_cast<volatile char *>(numbers)[-1] = 'A';
    give_up_numbers(numbers);
}

static void twice_array() {
    int *numbers = make_numbers(7);
    give_up_numbers(numbers);
    give_up_numbers(numbers);
}

static void write_freed_element() {
    std::vector<int> numbers(100, 1);
    volatile int *first = show(numbers.data());
    numbers.reserve(1000);
    first[1] = 5;
    std::exit(0);
}

static void base_of_object() { give_up_object(make_object()); }
static void sized_delete() { give_up_sized(show(::operator new(40)), 48); }

static void sized_delete_by_a_thread() {
    void *p = show(::operator new(40));
    std::thread([p] { give_up_sized(p, 48); }).join();
}

// Frees memory by another family's function than the one that allocated it.
APART void give_up_object_of(void *p) {
    ::operator delete(p);
    STAY;
}

APART void give_up_array_of(void *p) {
    ::operator delete[](p);
    STAY;
}

APART void give_up_to_c(void *p) {
    std::free(p);
    STAY;
}

static void malloc_and_delete() { give_up_object_of(show(std::malloc(40))); }
static void large_malloc_and_delete() { give_up_object_of(show(std::malloc(300000))); }
static void new_and_free() { give_up_to_c(show(::operator new(40))); }
static void new_array_and_free() { give_up_to_c(show(::operator new[](40))); }
static void new_and_delete_array() { give_up_array_of(show(::operator new(40))); }
static void new_array_and_delete() { give_up_object_of(show(::operator new[](40))); }
static void aligned_new_and_delete() { give_up_object_of(show(::operator new(128, std::align_val_t(64)))); }
static void aligned_new_and_free() { give_up_to_c(show(::operator new(128, std::align_val_t(64)))); }
static void new_and_aligned_delete() { ::operator delete(show(::operator new(4096)), std::align_val_t(16)); }
static void new_and_realloc() { std::printf("%p\n", std::realloc(show(::operator new(40)), 400)); }

// Each of the right pairs.
static void right_pairs() {
    for (int i = 0; i < 3; i++) {
        std::size_t size = i == 2 ? 300000 : 40u + 1000u * static_cast<unsigned>(i);
        std::align_val_t align{i == 0 ? 8u : 64u};
        ::operator delete(::operator new(size));
        ::operator delete(::operator new(size), size);
        ::operator delete(::operator new(size, std::nothrow), std::nothrow);
        ::operator delete[](::operator new[](size));
        ::operator delete[](::operator new[](size), size);
        ::operator delete[](::operator new[](size, std::nothrow));
        ::operator delete(::operator new(size, align), align);
        ::operator delete(::operator new(size, align), size, align);
        ::operator delete[](::operator new[](size, align), align);
        ::operator delete[](::operator new[](size, align, std::nothrow), align);
        void *p = nullptr;
        if (posix_memalign(&p, 64, size) == 0)
            std::free(std::realloc(p, 2 * size));
        std::free(std::calloc(1, size));
        std::free(std::aligned_alloc(64, size / 64 * 64 + 64));
    }
    std::string text(100, 'x');
    std::free(strdup(text.c_str()));
}

int main(int argc, char **argv) {
    const struct {
        const char *name;
        void (*run)();
    } parts[] = {
        {"past_end_of_array", past_end_of_array},     {"before_start_of_array", before_start_of_array},
        {"twice_array", twice_array},                 {"write_freed_element", write_freed_element},
        {"base_of_object", base_of_object},           {"sized_delete", sized_delete},
        {"sized_delete_by_a_thread", sized_delete_by_a_thread},
        {"malloc_and_delete", malloc_and_delete},     {"large_malloc_and_delete", large_malloc_and_delete},
        {"new_and_free", new_and_free},               {"new_array_and_free", new_array_and_free},
        {"new_and_delete_array", new_and_delete_array}, {"new_array_and_delete", new_array_and_delete},
        {"aligned_new_and_delete", aligned_new_and_delete}, {"aligned_new_and_free", aligned_new_and_free},
        {"new_and_aligned_delete", new_and_aligned_delete}, {"new_and_realloc", new_and_realloc},
        {"right_pairs", right_pairs},
    };
    for (const auto &part : parts)
        if (argc > 1 && std::strcmp(argv[1], part.name) == 0) {
            part.run();
            return 0;
        }
    std::fprintf(stderr, "no such part: %s\n", argc > 1 ? argv[1] : "(none)");
    return 2;
}

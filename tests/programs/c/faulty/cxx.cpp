// The mistakes that C++ adds.
#include <cstddef>
#include <cstdio>
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

// Without a virtual destructor the size that is said is the base's.
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

int main(int argc, char **argv) {
    const struct {
        const char *name;
        void (*run)();
    } parts[] = {
        {"past_end_of_array", past_end_of_array},     {"before_start_of_array", before_start_of_array},
        {"twice_array", twice_array},                 {"write_freed_element", write_freed_element},
        {"base_of_object", base_of_object},           {"sized_delete", sized_delete},
        {"sized_delete_by_a_thread", sized_delete_by_a_thread},
    };
    for (const auto &part : parts)
        if (argc > 1 && std::strcmp(argv[1], part.name) == 0) {
            part.run();
            return 0;
        }
    std::fprintf(stderr, "no such part: %s\n", argc > 1 ? argv[1] : "(none)");
    return 2;
}

// A C++ program that deletes an object twice, in the form that the first argument names.
#include "check.h"
#include <new>

static void *expect(void *address) {
    printf("%p\n", address);
    fflush(stdout);
    return address;
}

static void plain() {
    void *p = expect(::operator new(48));
    ::operator delete(p);
    ::operator delete(p);
}

static void array() {
    void *p = expect(::operator new[](48));
    ::operator delete[](p);
    ::operator delete[](p);
}

static void sized() {
    void *p = expect(::operator new(48));
    ::operator delete(p, size_t(48));
    ::operator delete(p, size_t(48));
}

static void aligned() {
    auto a = std::align_val_t(64);
    void *p = expect(::operator new(64, a));
    ::operator delete(p, a);
    ::operator delete(p, a);
}

static const struct part PARTS[] = {
    {"plain", plain}, {"array", array}, {"sized", sized}, {"aligned", aligned}, {nullptr, nullptr}};

int main(int argc, char **argv) { return run_part(argc, argv, PARTS); }

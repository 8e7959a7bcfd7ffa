// A library in C++ whose functions call back from templates, lambdas and while an exception is
// under way.
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

using callback = void (*)();

#define STAY __asm__ volatile("" ::: "memory")

template <typename T> struct Box {
    callback call;
    T value;
    __attribute__((noinline)) ~Box() {
        call();
        STAY;
    }
};

static __attribute__((noinline)) void throws(callback call) {
    Box<std::string> box{call, "text"};
    throw std::runtime_error("on its way");
}

extern "C" __attribute__((noinline)) void through_an_exception(callback call) {
    try {
        throws(call);
    } catch (const std::runtime_error &) {
        STAY;
    }
}

extern "C" __attribute__((noinline)) void through_a_lambda(callback call) {
    std::vector<int> numbers{3, 1, 2};
    std::function<bool(int, int)> less = [call](int a, int b) {
        call();
        STAY;
        return a < b;
    };
    std::sort(numbers.begin(), numbers.end(), less);
    STAY;
}

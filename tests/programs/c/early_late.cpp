// Objects before main and after it, and while threads end.
#include "check.h"
#include <memory>
#include <pthread.h>
#include <string>
#include <thread>
#include <vector>

static void *from_constructor;

__attribute__((constructor(101))) static void before_everything() {
    from_constructor = malloc(1000);
    CHECK(from_constructor);
    memset(from_constructor, 1, 1000);
    free(malloc(5 << 20));
    void *p = realloc(calloc(10, 10), 100000);
    CHECK(p);
    free(p);
}

__attribute__((destructor(101))) static void after_everything() {
    free(from_constructor);
    void *p = malloc(3000);
    CHECK(p);
    memset(p, 2, 3000);
    free(p);
    CHECK(write(1, "end\n", 4) == 4);
}

static std::vector<std::string> global(1000, std::string(100, 'g'));
static void *from_main;

static void at_exit() {
    free(from_main);
    void *p = malloc(100000);
    CHECK(p);
    free(p);
    CHECK(atexit([] { free(calloc(5, 5000)); }) == 0);
}

struct Late {
    std::unique_ptr<std::string> text = std::make_unique<std::string>(500, 'l');
    std::vector<std::unique_ptr<int>> many;
    Late() {
        for (int i = 0; i < 300; i++)
            many.push_back(std::make_unique<int>(i));
    }
    ~Late() {
        for (int i = 0; i < 300; i++)
            CHECK(*many[size_t(i)] == i);
        text->append(5000, 'm');
        many.push_back(std::make_unique<int>(7));
    }
};
static thread_local Late late;

static pthread_key_t keys[3];
static int rounds_seen[3];

// Sets its key again: the system calls it PTHREAD_DESTRUCTOR_ITERATIONS times, also after Craton's
// destructor.
template <int N> static void destroy(void *object) {
    CHECK(*static_cast<int *>(object) == N);
    free(object);
    __atomic_fetch_add(&rounds_seen[N], 1, __ATOMIC_RELAXED);
    int *next = static_cast<int *>(malloc(sizeof(int) + size_t(N) * 1000));
    CHECK(next);
    *next = N;
    pthread_setspecific(keys[N], next);
    for (int i = 1; i < 200; i++)
        free(malloc(size_t(i) * 50));
}

template <int N> static void set_key() {
    int *first = static_cast<int *>(malloc(sizeof(int)));
    CHECK(first);
    *first = N;
    CHECK(pthread_setspecific(keys[N], first) == 0);
}

int main() {
    CHECK(pthread_key_create(&keys[0], destroy<0>) == 0);
    CHECK(pthread_key_create(&keys[1], destroy<1>) == 0);
    CHECK(pthread_key_create(&keys[2], destroy<2>) == 0);
    for (int round = 0; round < 20; round++) {
        std::vector<std::thread> threads;
        for (int i = 0; i < 16; i++)
            threads.emplace_back([] {
                late.text->append("x");
                set_key<0>();
                set_key<1>();
                set_key<2>();
            });
        for (auto &t : threads)
            t.join();
    }
    for (int n : rounds_seen)
        CHECK(n == 20 * 16 * 4); // PTHREAD_DESTRUCTOR_ITERATIONS
    CHECK(rss_kib() < 64 * 1024);
    from_main = malloc(200);
    CHECK(atexit(at_exit) == 0);
    late.text->append("main");
    CHECK(global[999].size() == 100);
    // A thread that still runs while the process ends.
    std::thread([] {
        for (;;)
            free(malloc(100));
    }).detach();
    return 0;
}

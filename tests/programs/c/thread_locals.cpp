// Thread-local objects whose destructors allocate and free, in each order of creation, and objects
// that another thread frees.
#include "check.h"
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

static std::vector<std::unique_ptr<std::string>> *left[64];

struct Tail {
    std::map<int, std::string> map;
    std::vector<int> vector;
    Tail() { map[1] = std::string(100, 'a'); }
    ~Tail() {
        for (int i = 0; i < 100; i++) {
            map[i] = std::string(static_cast<size_t>(i) * 7 + 20, 'b');
            vector.push_back(i);
        }
        CHECK(map.size() == 100 && map[99].size() == 99 * 7 + 20);
    }
};

static thread_local Tail first;
static thread_local std::vector<std::unique_ptr<std::string>> texts;

// Its destructor makes the thread's objects anew that were not yet there.
struct Late {
    ~Late() { first.map[7] = "late"; }
};
static thread_local Late late;

static void run(size_t me, bool allocates_first) {
    if (allocates_first)
        first.map[3] = std::string(50, 'c');
    (void)&late;
    for (int i = 0; i < 500; i++)
        texts.push_back(std::make_unique<std::string>(static_cast<size_t>(i) % 90, 'd'));
    left[me] = new std::vector<std::unique_ptr<std::string>>(std::move(texts));
    texts.emplace_back(new std::string(1000, 'e'));
}

int main() {
    for (int round = 0; round < 30; round++) {
        std::vector<std::thread> threads;
        for (size_t i = 0; i < 64; i++)
            threads.emplace_back(run, i, i % 2 == 0);
        for (auto &thread : threads)
            thread.join();
        for (auto *vector : left) {
            CHECK(vector->size() == 500 && *vector->back() == std::string(499 % 90, 'd'));
            delete vector;
        }
    }
    return 0;
}

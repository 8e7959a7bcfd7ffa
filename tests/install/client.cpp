/* A C++ program that finds Craton by pkg-config, with a container in a separate heap. */
#include <craton.hpp>
#include <cstdio>
#include <string>
#include <vector>

int main() {
    craton::memory_resource resource("client");
    std::pmr::vector<std::pmr::string> strings(&resource);
    for (int i = 0; i < 1000; i++)
        strings.emplace_back("a string that is longer than what fits into the object itself");
    if (resource.stats().objects != 1001) return 1;
    std::printf("%s\n", craton_version());
}

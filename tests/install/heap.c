/* A program that finds the persistent heap by pkg-config or CMake, and keeps a number in the file
 * that it is given: each run adds one, and prints it. */
#include <craton_pheap.h>
#include <stdio.h>

int main(int count, char **arguments) {
    craton_pheap *heap;
    craton_pptr *slot;
    uint64_t *number;
    if (count != 2 || craton_pheap_open_or_create(arguments[1], NULL, &heap)) return 2;
    if (craton_pheap_root(heap, "number", 0, &slot) && craton_pheap_add_root(heap, "number", 0, &slot)) return 3;
    if (!*slot) {
        if (craton_pheap_alloc_to(heap, slot, sizeof *number, (void **)&number)) return 4;
        *number = 0;
    }
    number = craton_pheap_pointer(heap, *slot);
    ++*number;
    printf("%lu\n", (unsigned long)*number);
    if (craton_pheap_persist(heap, number, sizeof *number)) return 5;
    return craton_pheap_close(heap);
}

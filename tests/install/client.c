/* A program that finds Craton by pkg-config or CMake, and allocates. */
#include <craton.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    char *kept[1000];
    for (size_t i = 0; i < 1000; i++) {
        kept[i] = malloc(i + 1);
        if (!kept[i]) return 1;
        memset(kept[i], (int)i, i + 1);
    }
    for (size_t i = 0; i < 1000; i++) free(kept[i]);
    printf("%s\n", craton_version());
    return 0;
}

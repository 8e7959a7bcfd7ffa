/* Allocates a little, also through functions of libc, and prints a line; with an argument, also
 * whether the system treats it as privileged. */
#define _GNU_SOURCE
#include "check.h"
#include <sys/auxv.h>

int main(int argc, char **argv) {
    (void)argv;
    char *copy = strdup("hello");
    char *line = NULL;
    CHECK(copy && asprintf(&line, "%s, %d", copy, 42) > 0);
    void *p = malloc(1000);
    void *q = realloc(malloc(100), 3 * MIB);
    CHECK(p && q);
    puts(line);
    if (argc > 1)
        printf("privileged: %lu\n", getauxval(AT_SECURE));
    free(line);
    free(copy);
    free(p);
    free(q);
    return 0;
}

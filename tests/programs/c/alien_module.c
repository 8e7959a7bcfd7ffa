/* A library that allocates by the C library or the Craton that it is linked with. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Made while the library is opened. */
static char *early;
__attribute__((constructor)) static void at_open(void) { early = strdup("made at the opening"); }

char *take_early(void) {
    char *p = early;
    early = NULL;
    return p;
}

void *give(size_t size) { return malloc(size); }
char *copy(const char *text) { return strdup(text); }
void take(void *p) { free(p); }
void *grow(void *p, size_t size) { return realloc(p, size); }
/* The program has one, too. */
int whose(void) { return 2; }
int ask_whose(void) { return whose(); }

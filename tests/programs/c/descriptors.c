/* A program that is started without standard descriptors. The numbers 0 to 2 are then those of the files that it opens: a library
 * that held one of them, or closed it, would meddle with the program's own files. */
#include "check.h"

int main(void) {
    void *p = malloc(100), *q = malloc(3 * MIB), *r = malloc(64 * MIB);
    CHECK(p && q && r);
    for (int expected = 0; expected < 3; expected++)
        if (open("/dev/null", O_RDWR) != expected)
            _exit(10 + expected);
    free(p);
    free(q);
    free(r);
    for (int number = 0; number < 3; number++)
        if (fcntl(number, F_GETFD) < 0)
            _exit(20 + number);
    return 0;
}

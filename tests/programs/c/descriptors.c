/* A program that is started without standard descriptors. Its files then get the numbers 0 to 2: a
 * library that held one of them, or closed it, would disturb the program's files. */
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

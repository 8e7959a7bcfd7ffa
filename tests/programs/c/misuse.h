/* Shared by the programs that misuse the library. */
#ifndef MISUSE_H
#define MISUSE_H

#include <stdio.h>

/* C23, which an older C library does not declare. */
extern void free_sized(void *, size_t) __attribute__((weak));
extern void free_aligned_sized(void *, size_t, size_t) __attribute__((weak));

/* Prints the address that the line on standard error must name. */
static inline void *expect(void *address) {
    printf("%p\n", address);
    fflush(stdout);
    return address;
}

#endif

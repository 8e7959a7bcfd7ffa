/* A library with fork handlers, which a program opens. */
#include <pthread.h>
#include <stdlib.h>

static void (*note)(char);
static void *object;

static void prepare(void) {
    object = malloc(5000);
    note('x');
}

static void parent(void) {
    free(object);
    note('y');
}

static void child(void) {
    free(object);
    note('z');
}

void log_to(void (*f)(char)) {
    note = f;
    pthread_atfork(prepare, parent, child);
}

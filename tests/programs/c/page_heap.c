/* The option page_heap in a running program; the argument is its page heap. */
#include "check.h"
#include <dlfcn.h>

int main(int argc, char **argv) {
    int (*set)(const char *, const char *);
    *(void **)&set = dlsym(RTLD_DEFAULT, "craton_option_set");
    CHECK(argc == 2 && set);
    void *p = malloc(100);
    CHECK(p);
    int is_frames = strcmp(argv[1], "frames") == 0;
    const char *other = is_frames ? "temeraire" : "frames";
    errno = 0;
    CHECK(set("page_heap", other) == -1 && errno == EINVAL);
    CHECK(set("page_heap", "buddy") == -1 && errno == EINVAL);
    CHECK(set("page_heap", argv[1]) == 0);
    free(p);
    return 0;
}

// A server that grows, for the test of the page in a browser: sessions and their bodies, a cache of
// pages of which a third is freed, some large objects and a huge one.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct session {
  struct session *next;
  char *body;
  char name[40];
};
static struct session *sessions;
static void *pages[4000];

__attribute__((noinline)) static char *read_body(int bytes) {
  return memset(malloc(bytes), 7, bytes);
}

__attribute__((noinline)) static void open_session(int i) {
  struct session *s = malloc(sizeof *s);
  *s = (struct session){.next = sessions, .body = read_body(200 + i * 37 % 4000)};
  sessions = s;
}

__attribute__((noinline)) static void *cache_page(int bytes) {
  return memset(malloc(bytes), 1, bytes);
}

__attribute__((noinline)) static void *decode_image(void) {
  return memset(malloc(40 << 20), 1, 30 << 20);
}

int main(void) {
  decode_image();
  for (int i = 0; i < 4000; i++) pages[i] = cache_page(6000 + i % 9 * 700);
  for (int i = 0; i < 12; i++) cache_page(300000 + i * 90000);
  for (int i = 0; i < 30000; i++) open_session(i);
  for (int i = 0; i < 4000; i += 3) free(pages[i]);
  puts("ready");
  fflush(stdout);
  for (int round = 0;; round++) {
    usleep(100000);
    for (int i = 0; i < 300; i++) open_session(i + round);
    // Now and then many sessions lose their bodies.
    struct session *s = sessions;
    for (int i = 0; round % 64 == 63 && i < 9000 && s; i++, s = s->next) {
      free(s->body);
      s->body = NULL;
    }
  }
}

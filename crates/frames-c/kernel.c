/* How a kernel in C uses page frames, as one program without a C library: it ends with status 0 if
 * all went well, else with the number of the step that failed. scripts/bare.sh builds and runs it.
 *
 *   cargo build --release --manifest-path apps/module/Cargo.toml --target x86_64-unknown-none \
 *     --target-dir target/bare
 *   cc -ffreestanding -nostdlib -static -mno-sse -mno-red-zone -Icrates/frames-c/include \
 *     crates/frames-c/kernel.c target/bare/x86_64-unknown-none/release/libcraton_module.a */
#include "craton_frames.h"

#define FRAMES ((size_t)1 << 16) /* 256 MiB */
#define CPUS ((size_t)2)
#define FIRST_USABLE ((size_t)256) /* the kernel's image lies below */

/* The state lies here. A kernel would take craton_frames_size() bytes of the memory itself. */
static unsigned char buffer[1 << 16] __attribute__((aligned(64)));

/* A kernel would stop; here Linux ends the program. */
static _Noreturn void end(int status) {
  for (;;) __asm__ volatile("syscall" ::"a"(231), "D"(status) : "rcx", "r11", "memory");
}

void craton_frames_panic(const char *text, size_t bytes) {
  (void)text, (void)bytes; /* print it */
  end(255);
}

static int use(const struct craton_frames *frames) {
  struct craton_frames_stats stats;
  const long page = craton_frames_get(frames, 0, CRATON_FRAMES_UNMOVABLE, 0); /* on CPU 0 */
  const long huge = craton_frames_get(frames, CRATON_FRAMES_HUGE_ORDER, CRATON_FRAMES_MOVABLE, 1);

  if (page < 0 || huge < 0) return 4;
  /* The physical address of a frame is the range's begin + (frame << 12). */
  if (craton_frames_put(frames, (size_t)page, 0, 1) < 0) return 5; /* on any CPU */
  if (craton_frames_put(frames, (size_t)page, 0, 1) != -CRATON_FRAMES_NOT_ALLOCATED) return 6;
  if (craton_frames_put(frames, (size_t)huge, CRATON_FRAMES_HUGE_ORDER, 1) < 0) return 7;
  /* Any free range can be allocated. */
  if (craton_frames_reserve(frames, (size_t)huge + 2, 4) < 0) return 8;

  for (size_t cpu = 0; cpu < CPUS; cpu++)
    if (craton_frames_drain(frames, cpu) < 0) return 9;
  craton_frames_stats(frames, &stats);
  if (stats.free_frames != FRAMES - FIRST_USABLE - 4) return 10;
  return craton_frames_validate(frames) < 0 ? 11 : 0;
}

_Noreturn void _start(void) {
  struct craton_frames *frames = NULL;

  if (craton_frames_size(FRAMES, CPUS) > sizeof buffer) end(1);
  /* All frames begin as allocated; the usable ranges of the memory map are then freed. */
  if (craton_frames_init(buffer, sizeof buffer, FRAMES, CPUS, CRATON_FRAMES_ALLOCATED, &frames) < 0) end(2);
  if (craton_frames_unreserve(frames, FIRST_USABLE, FRAMES - FIRST_USABLE) < 0) end(3);
  end(use(frames));
}

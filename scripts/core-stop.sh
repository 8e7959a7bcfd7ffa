#!/usr/bin/env bash
# How long `craton core` stops a process of 1 GiB, as the process's clock shows it, and how long the
# command takes. Prints a table; with --record also writes it to results/core-stop.txt.
#   scripts/core-stop.sh [--record] [--runs N]     N of each (default 3); the median counts
set -euo pipefail
cd "$(dirname "$0")/.."
runs=3 record=
while [ $# -gt 0 ]; do
  case "$1" in
    --runs) runs=${2:?--runs wants a number} && shift 2 ;;
    --record) record=results/core-stop.txt && shift ;;
    *) echo "usage: $0 [--record] [--runs N]" >&2 && exit 2 ;;
  esac
done
release=${CARGO_TARGET_DIR:-target}/release
for built in craton libcraton.so; do
  [ -e "$release/$built" ] || { echo "$0: $release/$built is not built; run \`make build\` first" >&2; exit 1; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Keeps MIB in 4096 lists of objects of SIZE bytes (0: of 16 to 255), prints the address of the first
# object, and answers each byte of its
# input with the longest gap between two readings of the clock since the last answer.
cat >"$dir/holds.c" <<'C'
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}
static void **heads[4096], **first;
int main(int argc, char **argv) {
  size_t left = atol(argv[1]) << 20, wanted = atol(argv[2]);
  unsigned long x = 88172645463325252ul;
  while (left > 0) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    size_t size = wanted ? wanted : 16 + x % 240;
    void **p = memset(malloc(size), 1, size);
    p[0] = heads[x % 4096], heads[x % 4096] = p;
    if (!first) first = p;
    left -= size < left ? size : left;
  }
  printf("%p\n", (void *)first), fflush(stdout);
  double last = now(), longest = 0;
  for (unsigned n = 0;; n++) {
    double t = now();
    longest = t - last > longest ? t - last : longest, last = t;
    struct pollfd in = {0, POLLIN, 0};
    char c;
    if (n % 100000 || poll(&in, 1, 0) <= 0) continue;
    if (read(0, &c, 1) <= 0) return 0;
    printf("%.1f\n", longest * 1e3), fflush(stdout);
    longest = 0, last = now();
  }
}
C
cc -O2 -o "$dir/holds" "$dir/holds.c"

measure() { # WHAT SIZE: a row for each command
  local i task line median begun first
  coproc HOLDS { exec "$release/craton" run -- "$dir/holds" 1024 "$2"; }
  local pid=$HOLDS_PID in=${HOLDS[1]} out=${HOLDS[0]}
  read -r -u "$out" first
  for task in stats leaks "refs $first" users verify "save $dir/core"; do
    : >"$dir/stops" >"$dir/wholes"
    for ((i = 0; i < runs; i++)); do
      printf x >&"$in" && read -r -u "$out" line
      begun=$(date +%s%N)
      # shellcheck disable=SC2086
      "$release/craton" core --pid "$pid" $task >/dev/null 2>&1 || true
      echo $((($(date +%s%N) - begun) / 1000000)) >>"$dir/wholes"
      printf x >&"$in" && read -r -u "$out" line
      echo "$line" >>"$dir/stops"
    done
    median=$(((runs + 1) / 2))
    printf '%-22s %-7s %9s %10s\n' "$1" "${task%% *}" "$(sort -g "$dir/stops" | sed -n ${median}p)" \
      "$(sort -g "$dir/wholes" | sed -n ${median}p)"
    rm -f "$dir/core"
  done
  kill "$pid"
  wait "$pid" 2>/dev/null || true
}
table() {
  echo "== core-stop: a process of 1 GiB that does not sleep"
  echo
  echo "$(nproc) processors, Linux $(uname -r), commit $(git rev-parse --short HEAD), median of $runs"
  echo
  printf '%-22s %-7s %9s %10s\n' objects command "stop, ms" "whole, ms"
  measure "of 16 to 255 bytes" 0
  measure "of 1 MiB" 1048576
}
table | tee ${record:+"$record"}

#!/usr/bin/env bash
# Builds the bare-metal guest of apps/kernel and runs it in QEMU.
#   scripts/kernel.sh demo    checks on all CPUs, then the paper's benchmarks in instructions
#   scripts/kernel.sh host    the host takes back memory that the guest does not use, and gives it again
#   scripts/kernel.sh test    the guest's tests on the host, then guests that must pass, and fail
# CPUS and MEMORY choose the demo's guest; ACCEL=kvm runs it on the processor itself. QEMU names
# another emulator.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
manifest=apps/kernel/Cargo.toml target=${CARGO_TARGET_DIR:-target}/kernel
guest=$target/release/craton-kernel
cpus=${CPUS:-4} memory=${MEMORY:-512M} accel=${ACCEL:-tcg} qemu=${QEMU:-qemu-system-x86_64}

if ! command -v "$qemu" >/dev/null; then
  echo "$0: $qemu is not installed; Debian and Ubuntu: apt-get install qemu-system-x86" >&2
  exit 1
fi
case "$accel" in
  tcg | kvm) ;;
  *) echo "$0: ACCEL=$accel: ACCEL is tcg or kvm" >&2; exit 2 ;;
esac
if [ "$accel" = kvm ] && [ ! -w /dev/kvm ]; then
  echo "$0: ACCEL=kvm needs a /dev/kvm that you may write to; without ACCEL the guest is emulated" >&2
  exit 1
fi

# guest SECONDS CPUS MEMORY OPTION…: status 0 if the guest says that all is well.
run() {
  local limit=$1 cpus=$2 memory=$3 status=0
  shift 3
  timeout "$limit" "$qemu" -accel "$accel" -cpu max -smp "$cpus" -m "$memory" -display none -monitor none \
    -no-reboot -serial stdio -device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$guest" "$@" </dev/null || status=$?
  [ "$status" = 33 ] && return 0 # by isa-debug-exit
  [ "$status" = 124 ] && echo "$0: the guest did not end within $limit s" >&2
  return 1
}

build() {
  CARGO_INCREMENTAL=0 "$cargo" build -q --release --manifest-path "$manifest" --target-dir "$target"
}

field() { # NAME, of a line of JSON on standard input
  sed -nE "s/.*\"$1\":\"?([^,\"}]*).*/\1/p"
}

demo() {
  build
  echo "checks: $cpus CPUs, $memory, $accel"
  local begin line
  begin=$(date +%s%N)
  run 60 "$cpus" "$memory" -append checks | while read -r line; do
    printf '%s\n' "$line"
    # The CPUs run, all memory is page frames', and the page tables lie on them.
    [[ $line != *'"step":"tables"'* ]] || echo "boot: $((($(date +%s%N) - begin) / 1000000)) ms from QEMU's start"
  done
  # Counted instructions repeat; emulated times mean nothing.
  local options=(-icount shift=0,sleep=off) unit=instructions
  [ "$accel" = tcg ] || { options=() unit="ticks of the processor's clock"; }
  printf '\nan operation in %s, all CPUs together\n%-9s %5s %4s %8s %8s %8s\n' "$unit" "" order CPUs get put "get + put"
  run 60 "$cpus" "$memory" "${options[@]}" | while read -r line; do
    case "$line" in
      *'"step":"bench"'*)
        printf '%-9s %5s %4s %8s %8s %8s\n' "$(field name <<<"$line")" "$(field order <<<"$line")" \
          "$(field cpus <<<"$line")" "$(field get <<<"$line")" "$(field put <<<"$line")" "$(field pair <<<"$line")" ;;
      *'"step":"fragmentation"'*)
        printf 'turn %3s of small frames freed and allocated: %s of %s possible huge frames are free\n' \
          "$(field turn <<<"$line")" "$(field free_huge_frames <<<"$line")" "$(field possible <<<"$line")" ;;
      *'"step":"failed"'*) printf '%s\n' "$line" ;;
    esac
  done
}

# The guest's memory is a file in memory, shared with the host's program.
host() {
  build
  CARGO_INCREMENTAL=0 "$cargo" build -q --release --manifest-path "$manifest" --target-dir "$target" -p craton-host
  file=$(mktemp -p /dev/shm)
  trap 'rm -f "$file"' EXIT
  timeout 120 "$target/release/craton-host" "$file" "$qemu" -accel "$accel" -cpu max -smp "$cpus" -m "$memory" \
    -object "memory-backend-file,id=guest,size=$memory,mem-path=$file,share=on" -machine pc,memory-backend=guest \
    -display none -monitor none -no-reboot -serial stdio -device isa-debug-exit,iobase=0xf4,iosize=4 \
    -kernel "$guest" -append "checks host" </dev/null
}

expect_failure() { # TEXT, then as for run
  local text=$1 said
  shift
  if said=$(run "$@"); then
    echo "$0: a guest that should fail with \"$text\" ended well: $*" >&2
    return 1
  fi
  grep -qF "$text" <<<"$said" || { printf '%s: expected "%s" of %s, got:\n%s\n' "$0" "$text" "$*" "$said" >&2; return 1; }
}

expect_refusal() { # TEXT VARIABLE=VALUE: before anything is built
  local said
  if said=$(env "$2" scripts/kernel.sh demo 2>&1) || ! grep -qF "$1" <<<"$said"; then
    printf '%s: expected "%s" with %s, got:\n%s\n' "$0" "$1" "$2" "$said" >&2
    return 1
  fi
}

tests() {
  "$cargo" fmt --manifest-path "$manifest" --check
  "$cargo" clippy -q --manifest-path "$manifest" --target-dir "$target" --workspace -- -D warnings
  "$cargo" test -q --manifest-path "$manifest" --target-dir "$target" --lib
  build
  run 60 1 32M -append checks
  run 60 4 256M -append checks
  run 60 8 128M -append checks -cpu qemu64 # without pages of 1 GiB
  run 120 2 128M -icount shift=0,sleep=off
  cpus=2 memory=64M host
  expect_failure "was written to by CPU" 60 2 64M -append "checks plant=frame"
  expect_failure "page fault 14" 60 1 64M -append "checks plant=fault"
  expect_failure "are too little" 60 1 12M
  expect_failure "this guest has room for 8" 60 9 64M
  expect_refusal "no-such-qemu is not installed" QEMU=no-such-qemu
  expect_refusal "ACCEL is tcg or kvm" ACCEL=hvf
  [ -w /dev/kvm ] || expect_refusal "ACCEL=kvm needs a /dev/kvm that you may write to" ACCEL=kvm
  echo "the guest passes its checks, and reports what is planted"
}

case "${1:-}" in
  demo) demo ;;
  host) host ;;
  test) tests ;;
  *) echo "usage: $0 demo|host|test" >&2; exit 2 ;;
esac

#!/usr/bin/env bash
# Builds the bare-metal guest of apps/kernel and runs it in QEMU.
#   scripts/kernel.sh demo    checks on all CPUs, then the paper's benchmarks in instructions
#   scripts/kernel.sh host    the host takes back memory that the guest does not use, and gives it again
#   scripts/kernel.sh test    the guest's tests on the host, then guests that must pass, and fail
# CPUS and MEMORY choose the guest of `demo` and `host`, 4 and 512M by default; ACCEL=kvm runs it on
# the processor itself. QEMU names another emulator.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/emulator.sh
cargo=${CARGO:-cargo}
manifest=apps/kernel/Cargo.toml target=${CARGO_TARGET_DIR:-target}/kernel
guest=$target/release/craton-kernel
cpus=${CPUS:-4} memory=${MEMORY:-512M} accel=${ACCEL:-tcg} qemu=${QEMU:-qemu-system-x86_64}

give_up() {
  echo "$0: $*" >&2
  exit 1
}

mib_of() { # MEMORY, as 512M or 2G; QEMU takes a number alone for MiB
  local number=${1%[MG]}
  [[ $1 != *G ]] || number=$((number * 1024))
  echo "$number"
}

check_arguments() {
  local most there
  most=$(sed -nE 's/^pub const MOST: usize = ([0-9]+);/\1/p' apps/kernel/src/bare/cpus.rs)
  [[ $cpus =~ ^[1-9][0-9]{0,3}$ ]] && [ "$cpus" -le "$most" ] || give_up "CPUS=$cpus: the guest has room for 1 to $most CPUs"
  [[ $memory =~ ^[1-9][0-9]{0,6}[MG]?$ ]] || give_up "MEMORY=$memory: MEMORY is a number of MiB or GiB, as 512M or 2G"
  there=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
  [ "$(mib_of "$memory")" -le "$there" ] || give_up "MEMORY=$memory: the guest writes to all of it, and $there MiB are available here"
  case "$accel" in
    tcg | kvm) ;;
    *) give_up "ACCEL=$accel: ACCEL is tcg or kvm" ;;
  esac
  [ "$accel" = tcg ] || [ -w /dev/kvm ] ||
    give_up "ACCEL=kvm needs a /dev/kvm that you may write to; without ACCEL the guest is emulated"
  command -v "$qemu" >/dev/null || give_up "$qemu is not installed; Debian and Ubuntu: apt-get install qemu-system-x86"
}

# run SECONDS CPUS MEMORY OPTION…: status 0 if the guest says that all is well. A guest may take
# longer by 20 seconds for each GiB.
run() {
  local limit=$(($1 + $(mib_of "$3") / 51)) cpus=$2 memory=$3 status=0 hint
  hint=$([ "$accel" = tcg ] || echo "; without ACCEL the guest is emulated")
  shift 3
  watch_script
  # The shell would report a signal by the whole command.
  {
    timeout --foreground "$limit" "$qemu" -accel "$accel" -cpu max -smp "$cpus" -m "$memory" -display none -monitor none \
      -pidfile "$pid_file" -no-reboot -serial stdio -device isa-debug-exit,iobase=0xf4,iosize=4 -kernel "$guest" "$@" </dev/null 2>&3 || status=$?
  } 3>&2 2>/dev/null
  leave_script
  case "$status" in
    33) return 0 ;; # by isa-debug-exit
    3) ;;           # the guest has said why
    124) echo "$0: the guest did not end within $limit s" >&2 ;;
    *) echo "$0: QEMU ended with status $status before the guest's last line$hint; its messages stand above" >&2 ;;
  esac
  return 1
}

build() {
  CARGO_INCREMENTAL=0 "$cargo" build -q --release --manifest-path "$manifest" --target-dir "$target" "$@"
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
  local there limit=$((120 + $(mib_of "$memory") / 25))
  there=$(df -m --output=avail /dev/shm | tail -n 1)
  [ "$(mib_of "$memory")" -le "$there" ] || give_up "MEMORY=$memory: the guest's memory is a file in /dev/shm, which has $there MiB free"
  build
  build -p craton-host
  file=$(mktemp -p /dev/shm)
  trap 'rm -f "$file"' EXIT
  watch_script
  local status=0
  "$target/release/craton-host" "$file" timeout --foreground "$limit" "$qemu" -accel "$accel" -cpu max -smp "$cpus" -m "$(mib_of "$memory")M" \
    -object "memory-backend-file,id=guest,size=$(mib_of "$memory")M,mem-path=$file,share=on" -machine pc,memory-backend=guest \
    -display none -monitor none -pidfile "$pid_file" -no-reboot -serial stdio -device isa-debug-exit,iobase=0xf4,iosize=4 \
    -kernel "$guest" -append "checks host" </dev/null || status=$?
  leave_script
  return "$status"
}

expect_failure() { # TEXT, then as for run
  local text=$1 said
  shift
  if said=$(run "$@" 2>&1); then
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

# A signal that ends the script alone ends its guest.
expect_end() {
  local there script files=() try qemu_pid
  there=$(mktemp -d)
  TMPDIR=$there CPUS=1 MEMORY=64M scripts/kernel.sh demo >/dev/null 2>&1 &
  script=$!
  for ((try = 0; try < 600; try++)); do
    files=("$there"/*.qemu)
    [ ! -s "${files[0]}" ] || break
    sleep 0.1
  done
  qemu_pid=$(cat "${files[0]}")
  kill "$script"
  for ((try = 0; try < 300; try++)); do
    kill -0 "$qemu_pid" 2>/dev/null || break
    sleep 0.1
  done
  rm -r "$there"
  [ "$try" -lt 300 ] || { kill "$qemu_pid"; echo "$0: QEMU runs on when its script was ended" >&2; return 1; }
}

tests() {
  "$cargo" fmt --manifest-path "$manifest" --check
  "$cargo" clippy -q --manifest-path "$manifest" --target-dir "$target" --workspace -- -D warnings
  "$cargo" test -q --manifest-path "$manifest" --target-dir "$target" --lib
  build
  run 60 1 32M -append checks
  run 60 4 256M -append checks
  run 60 8 128M -append checks -cpu qemu64 # without pages of 1 GiB
  local apart=pc,max-ram-below-4g=128M # half of 256 MiB lies above 4 GiB
  run 60 2 256M -machine "$apart" -append checks
  run 60 2 256M -machine "$apart" -append "checks only=high"
  run 120 2 128M -icount shift=0,sleep=off
  cpus=2 memory=64M host
  expect_failure "was written to by CPU" 60 2 64M -append "checks plant=frame"
  expect_failure "page fault 14" 60 1 64M -append "checks plant=fault"
  expect_failure "are too little" 60 1 12M
  expect_failure "this guest has room for 8" 60 9 64M
  expect_failure "QEMU ended with status 1" 60 1 64M -no-such-option
  expect_end
  expect_refusal "no-such-qemu is not installed" QEMU=no-such-qemu
  expect_refusal "ACCEL is tcg or kvm" ACCEL=hvf
  expect_refusal "CPUS=0: the guest has room for 1 to 8 CPUs" CPUS=0
  expect_refusal "MEMORY is a number of MiB or GiB" MEMORY=nonsense
  expect_refusal "the guest writes to all of it" MEMORY=9999G
  [ -w /dev/kvm ] || expect_refusal "ACCEL=kvm needs a /dev/kvm that you may write to" ACCEL=kvm
  echo "the guest passes its checks, and reports what is planted"
}

[ $# = 1 ] || set -- usage
case "$1" in
  demo | host | test)
    check_arguments
    "${1/test/tests}"
    ;;
  *) echo "usage: $0 demo|host|test" >&2; exit 2 ;;
esac

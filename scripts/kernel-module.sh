#!/usr/bin/env bash
# Builds the Linux module of apps/module for Debian's packaged kernel, boots that kernel in QEMU, and
# runs page frames beside the kernel's buddy allocator.
#   scripts/kernel-module.sh [CPUS [JSON-FILE]]    default: 2 CPUs
#   scripts/kernel-module.sh lines                 cache lines and instructions of single operations
#   scripts/kernel-module.sh turns [CPUS]          the same of CPUs that take turns, 8 by default and 16
#                                                  at most: lines that move between them, instructions
#                                                  under the zone's lock
#   scripts/kernel-module.sh test                  a short run, one with a planted bug, and the lines
# Debian's packages are fetched by apt-get into target/linux-guest, not installed.
# UNIT=instructions: a nanosecond in the output is an instruction of any CPU; CPUs take turns.
# UNIT=time (default): emulated CPUs run side by side. ACCEL=kvm: the guest runs on the processor
# itself. ROUNDS: rounds of each benchmark, 3 by default. QEMU names another emulator, KERNEL another
# version of Debian's kernel, as 6.1.0-32-cloud-amd64.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/emulator.sh
accel=${ACCEL:-tcg} unit=${UNIT:-time} qemu=${QEMU:-qemu-system-x86_64}
rounds=${ROUNDS:-3}

give_up() {
  echo "$0: $*" >&2
  exit 1
}

usage() {
  echo "usage: $0 [CPUS [JSON-FILE]] | lines | turns [CPUS] | test" >&2
  exit 2
}

# Before anything is fetched or built.
check_arguments() {
  local what=${1:-2} cpus=2 most=255 whose="QEMU's machine has"
  case "$what" in
    lines | test) [ $# = 1 ] || usage ;;
    turns) [ $# -le 2 ] || usage; cpus=${2:-8} most=16 whose="the plugin counts" ;; # MOST_CPUS in lines.c
    *[!0-9]*) usage ;;
    *) [ $# -le 2 ] || usage; cpus=$what ;;
  esac
  [[ $cpus =~ ^[1-9][0-9]{0,2}$ ]] && [ "$cpus" -le "$most" ] || give_up "$cpus CPUs: $whose 1 to $most"
  [[ $rounds =~ ^[1-9][0-9]{0,3}$ ]] || give_up "ROUNDS=$rounds: a number from 1 to 9999"
  case "$accel $unit" in
    "tcg instructions") unit_options=(-icount shift=0,sleep=off) ;;
    "tcg time" | "kvm time") ;;
    *) give_up "ACCEL=$accel UNIT=$unit: ACCEL is tcg or kvm, UNIT is time, or with tcg instructions" ;;
  esac
  [ "$accel" = tcg ] || [ -w /dev/kvm ] || give_up "ACCEL=kvm needs a /dev/kvm that you may write to; without ACCEL the guest is emulated"
  local tool
  for tool in "$qemu:qemu-system-x86" gcc:gcc make:make apt-get:apt dpkg-deb:dpkg cpio:cpio; do
    command -v "${tool%:*}" >/dev/null || give_up "${tool%:*} is not installed; Debian and Ubuntu: apt-get install ${tool#*:}"
  done
}
unit_options=()
check_arguments "$@"

. scripts/guest-folder.sh

# The kernel, its headers and the tools that build modules, at one version.
fetch() {
  local image=${KERNEL:+linux-image-$KERNEL} headers
  [ -n "$image" ] || image=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -nE 's/.*Depends: (linux-image-[0-9].*)/\1/p' | head -n 1)
  [ -n "$image" ] || give_up "apt knows no linux-image-cloud-amd64: run apt-get update; the module needs Debian's packages"
  version=${image#linux-image-}
  headers=linux-headers-$version
  [ -e "$folder/root-$version/done" ] && return
  rm -rf "$folder/root-$version" "$folder/packages"
  mkdir -p "$folder/packages" "$folder/root-$version"
  (cd "$folder/packages" && apt-get -qq download "$image" "$headers" "linux-headers-${version%-cloud-amd64}-common" \
    "linux-kbuild-$(cut -d . -f 1,2 <<<"$version")" busybox-static 2>/dev/null) ||
    give_up "apt-get cannot download $image, $headers and their companions: run apt-get update, or choose another KERNEL"
  local package
  for package in "$folder"/packages/*.deb; do
    dpkg-deb -x "$package" "$folder/root-$version"
  done
  # The headers name each other by their installed places.
  sed -i "s#/usr/src/#$folder/root-$version/usr/src/#" "$folder/root-$version/usr/src/$headers/Makefile"
  touch "$folder/root-$version/done"
}

build() {
  local build=$folder/build headers=$folder/root-$version/usr/src/linux-headers-$version
  rm -rf "$build"
  mkdir -p "$build"
  scripts/frames-asm.sh "$build/frames.S"
  cp apps/module/{Kbuild,module.c} crates/frames-c/include/craton_frames.h "$build"
  make -s -C "$headers" M="$build" modules >"$build/log" 2>&1 || { tail -n 20 "$build/log" >&2; give_up "the module does not build"; }

  local root=$folder/initramfs
  rm -rf "$root"
  mkdir -p "$root"/{bin,proc,sys,dev,tracing}
  cp "$folder/root-$version/bin/busybox" "$root/bin"
  cp "$build/craton.ko" "$root"
  cat >"$root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox mount -t proc none /proc
/bin/busybox mount -t tracefs none /tracing
# Orders that the kernel asked for while it started (LLFree figure 2).
echo 0 >/tracing/events/enable
/bin/busybox grep -o 'order=[0-9]*' /tracing/trace | /bin/busybox sort | /bin/busybox uniq -c | while read -r requests order; do
  echo "craton: {\"step\":\"boot\",\"order\":${order#order=},\"requests\":$requests}" >/dev/console
done
read -r line </proc/cmdline
options=${line##*module:}
/bin/busybox insmod /craton.ko $options && /bin/busybox rmmod craton && echo 'craton: {"step":"unloaded"}' >/dev/console
/bin/busybox poweroff -f
INIT
  chmod +x "$root/init"
  (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$folder/initramfs.gz"
}

memory=1G
# guest SECONDS CPUS MODULE-OPTIONS QEMU-OPTION…: its lines of JSON
guest() {
  local limit=$1 cpus=$2 options=$3 status=0 trace
  shift 3
  trace=$((65536 / cpus)) # of each CPU, which does not start without it
  watch_script
  timeout --foreground "$limit" "$qemu" -accel "$accel" -cpu max -smp "$cpus" -m "$memory" -display none -monitor none -no-reboot \
    -pidfile "$pid_file" \
    -serial stdio "${unit_options[@]}" -kernel "$folder/root-$version/boot/vmlinuz-$version" -initrd "$folder/initramfs.gz" \
    -append "console=ttyS0 quiet loglevel=7 init_on_alloc=0 mitigations=off nokaslr no5lvl panic=-1 trace_event=kmem:mm_page_alloc trace_buf_size=${trace}K module: $options" "$@" </dev/null |
    tee "$folder/console" | sed -unE 's/^.*craton: (.*[^\r])\r?$/\1/p' || status=$?
  leave_script
  [ "$status" != 124 ] || echo "$0: the guest did not end within $limit s" >&2
  return "$status"
}

# lines CPUS MODULE-OPTIONS: sections of marked operations, joined with what the plugin counted.
lines() {
  local said counts=$folder/lines.json
  gcc -O2 -Wall -Wextra -Wno-unused-parameter -shared -fPIC -o "$folder/lines.so" apps/module/lines.c
  said=$(guest 500 "$1" "$2" -plugin "$folder/lines.so,out=$counts")
  grep -q '"step":"done"' <<<"$said" || { echo "$said" >&2; give_up "the module failed"; }
  grep -q "\"step\":\"memory\".*\"cpus\":$1}" <<<"$said" ||
    give_up "not all of $1 CPUs started: they have ten seconds each, so is this machine busy?"
  local line section counted
  grep '"step":"section"' <<<"$said" | while read -r line; do
    section=$(sed -E 's/.*"section":([0-9]+).*/\1/' <<<"$line")
    counted=$(grep "\"section\":$section," "$counts" | sed -E 's/.*"section":[0-9]+,//')
    echo "${line%\}},$counted" | sed -E 's/"step":"section","section":[0-9]+/"step":"lines"/'
  done
}

refuses() { # TEXT VARIABLE=VALUE [CPUS]: before anything is built
  local said
  if said=$(env "$2" scripts/kernel-module.sh "${3:-1}" 2>&1) || ! grep -qF "$1" <<<"$said"; then
    give_up "expected \"$1\" with $2, got: $said"
  fi
}

# One thread runs all CPUs. (With -icount the kernel's waits for a time would take minutes.)
turns() {
  accel=tcg,thread=single unit_options=() memory=2G
  lines "$1" "turns=1 mib=512"
}

fetch
build
case "${1:-2}" in
  lines)
    accel=tcg unit_options=()
    lines 1 "lines=1 mib=256"
    ;;
  turns) turns "${2:-8}" ;;
  test)
    refuses "no-such-qemu is not installed" QEMU=no-such-qemu
    refuses "apt-get cannot download linux-image-6.1.0-0-cloud-amd64, linux-headers-6.1.0-0-cloud-amd64" KERNEL=6.1.0-0-cloud-amd64
    refuses "ACCEL is tcg or kvm" ACCEL=hvf
    refuses "a number from 1 to 9999" ROUNDS=none
    refuses "0 CPUs: QEMU's machine has 1 to 255" ROUNDS=1 0
    refuses "256 CPUs: QEMU's machine has 1 to 255" ROUNDS=1 256
    [ -w /dev/kvm ] || refuses "ACCEL=kvm needs a /dev/kvm that you may write to" ACCEL=kvm
    said=$(guest 120 1 "rounds=1 mib=4000")
    grep -q "MiB of contiguous memory are free, and mib=4000 were asked for" <<<"$said" || { echo "$said" >&2; give_up "the module did not say that memory is short"; }
    said=$(guest 240 2 "rounds=1 mib=64")
    grep -q '"step":"done"' <<<"$said" && grep -q '"step":"unloaded"' <<<"$said" || { echo "$said" >&2; give_up "the module failed"; }
    said=$(guest 120 1 "rounds=1 mib=64 plant=1") || true
    grep -q "a frame has another frame's number" <<<"$said" || { echo "$said" >&2; give_up "the module did not find the planted bug"; }
    said=$(lines 1 "lines=1 mib=256")
    [ "$(grep -c '"operations":[1-9]' <<<"$said")" = 16 ] || { echo "$said" >&2; give_up "the plugin counted no operations"; }
    said=$(turns 2)
    [ "$(grep -c '"operations":[1-9]' <<<"$said")" = 40 ] || { echo "$said" >&2; give_up "the plugin counted no operations of two CPUs"; }
    grep -q '"allocator":"buddy".*"locked":[1-9]' <<<"$said" || { echo "$said" >&2; give_up "the plugin saw no instruction under the zone's lock"; }
    echo "the module passes its checks beside Linux's allocator, and finds what is planted"
    ;;
  *)
    guest 2400 "${1:-2}" "rounds=$rounds" | tee "$folder/said" ${2:+"$2"}
    grep -q '"step":"done"' "$folder/said" || give_up "the guest did not come to its end; $folder/console has what it said"
    ;;
esac

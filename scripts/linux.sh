#!/usr/bin/env bash
# Builds Linux with page frames in one zone (apps/linux), and boots it in QEMU.
#   scripts/linux.sh run ZONE|none STEP…   a guest: its lines of JSON; steps: apps/linux/guest.c
#                                          ZONE,all: page frames serve all orders first
#   scripts/linux.sh write [JSON-FILE]     the paper's write benchmark, with page frames and without
#   scripts/linux.sh parts                 where its instructions are spent
#   scripts/linux.sh memcached [JSON-FILE] memcached under load, with page frames and without
#   scripts/linux.sh balloon               memory goes back to the host: virtio-balloon, and page frames
#   scripts/linux.sh test                  guests that must pass, and guests with planted bugs
#   scripts/linux.sh build                 the kernel alone
# Debian's package linux-source-6.1 is fetched by apt-get into target/linux-guest, not installed.
# CPUS and MEMORY choose the guest, 2 and 512M by default. UNIT=instructions: one CPU, whose
# instructions are counted; a nanosecond in the output is one. ACCEL=kvm: the guest runs on the
# processor itself.
# JOBS: of make. DEBUG=1: a kernel with the page allocator's own checks. DEBIAN=1: one with what Debian's
# cloud kernel has built in, mitigations and all; it takes half an hour to build.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/emulator.sh
accel=${ACCEL:-tcg} unit=${UNIT:-time} qemu=${QEMU:-qemu-system-x86_64}
memory=${MEMORY:-512M} cpus=${CPUS:-$([ "$unit" = time ] && echo 2 || echo 1)}
package=${LINUX_PACKAGE:-linux-source-6.1}

give_up() {
  echo "$0: $*" >&2
  exit 1
}

check_usage() {
  case "$1 $#" in
    "run "[12]) ;;
    "run "* | "build 1" | "write "[12] | "parts 1" | "memcached "[12] | "balloon 1" | "test 1") return ;;
  esac
  echo "usage: $0 run ZONE|none STEP… | write [JSON-FILE] | parts | memcached [JSON-FILE] | balloon | test | build" >&2
  exit 2
}

check_tools() {
  local tool
  for tool in "$qemu:qemu-system-x86" gcc:gcc make:make apt-get:apt dpkg-deb:dpkg cpio:cpio patch:patch flex:flex \
    bison:bison bc:bc xz:xz-utils; do
    command -v "${tool%:*}" >/dev/null || give_up "${tool%:*} is not installed; Debian and Ubuntu: apt-get install ${tool#*:}"
  done
  echo '#include <gelf.h>' | gcc -E - >/dev/null 2>&1 || give_up "libelf's header is not installed; Debian and Ubuntu: apt-get install libelf-dev"
}

# Needs $2 MiB below folder $1.
check_room() {
  local free
  free=$(df -m --output=avail "$1" | tail -n 1)
  [ "$free" -ge "$2" ] || give_up "$1 has $free MiB free, and $3 takes $2: make room, or set CARGO_TARGET_DIR to a larger disk"
}

# The source with our patch, once for each package and patch.
fetch() {
  local version stamp
  version=$(apt-cache show --no-all-versions "$package" 2>/dev/null | sed -n 's/^Version: //p' || true)
  [ -n "$version" ] || give_up "apt knows no $package: run apt-get update; the kernel is Debian's packaged source (Debian 12)"
  stamp="$package $version $(cat apps/linux/page-frames.patch | sha256sum)"
  [ "$(cat "$source/done" 2>/dev/null)" = "$stamp" ] && return
  check_room "$folder" 2500 "the kernel's source"
  rm -rf "$source" "$folder/unpacked"
  mkdir -p "$source" "$folder/unpacked"
  (cd "$folder/unpacked" && apt-get -qq download "$package" 2>/dev/null) ||
    give_up "apt-get cannot download $package $version: run apt-get update"
  dpkg-deb -x "$folder"/unpacked/*.deb "$folder/unpacked"
  tar -xf "$folder"/unpacked/usr/src/linux-source-*.tar.xz --strip-components=1 -C "$source"
  rm -rf "$folder/unpacked"
  patch -s -p1 -d "$source" <apps/linux/page-frames.patch >"$folder/patch.log" 2>&1 ||
    give_up "apps/linux/page-frames.patch was made for linux-source-6.1 6.1.192-2 and does not fit $package $version: $(tail -n 1 "$folder/patch.log"); $folder/patch.log names the places"
  echo "$stamp" >"$source/done"
}

# Of Debian's packaged cloud kernel, without modules, keys and debug information; ours added.
debian_config() {
  local image packages=$folder/config-package
  image=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -nE 's/.*Depends: (linux-image-[0-9].*)/\1/p' | head -n 1)
  [ -n "$image" ] || give_up "apt knows no linux-image-cloud-amd64: run apt-get update; its configuration is needed"
  if [ ! -e "$packages/boot/config-${image#linux-image-}" ]; then
    rm -rf "$packages"
    mkdir -p "$packages"
    (cd "$packages" && apt-get -qq download "$image" 2>/dev/null) || give_up "apt-get cannot download $image: run apt-get update"
    dpkg-deb --fsys-tarfile "$packages"/*.deb | tar -x -C "$packages" --wildcards './boot/config-*'
    rm "$packages"/*.deb
  fi
  grep -vE '=m$|^CONFIG_(MODULE|SYSTEM_TRUSTED|SYSTEM_REVOCATION|DEBUG_INFO|BUILD_SALT|SECURITY_LOCKDOWN)' "$packages"/boot/config-*
  printf '%s\n' '# CONFIG_MODULES is not set' CONFIG_DEBUG_INFO_NONE=y CONFIG_PVH=y CONFIG_CRATON_FRAMES=y CONFIG_CRATON_FRAMES_PLANT=y
}

update() { # FILE…, FOLDER: copies what differs, so that make sees what changed
  local file to=${!#}
  for file in "${@:1:$#-1}"; do
    cmp -s "$file" "$to/${file##*/}" || cp "$file" "$to"
  done
}

build() {
  scripts/frames-asm.sh "$folder/craton_frames.S"
  update apps/linux/mm/*.[ch] crates/frames-c/include/craton_frames.h "$folder/craton_frames.S" "$source/mm"
  mkdir -p "$kernel"
  local config=$folder/config base=allnoconfig
  cat apps/linux/config ${DEBUG:+apps/linux/config.debug} >"$config"
  [ -z "${DEBIAN:-}" ] || { debian_config >"$config"; base=alldefconfig; }
  if ! cmp -s "$config" "$kernel/config" || [ ! -e "$kernel/.config" ]; then
    check_room "$folder" 700 "a build of the kernel"
    make -s -C "$source" O="$kernel" ARCH=x86_64 KCONFIG_ALLCONFIG="$config" "$base" >"$kernel/log" 2>&1
    cp "$config" "$kernel/config"
  fi
  make -s -C "$source" O="$kernel" ARCH=x86_64 -j "${JOBS:-$(nproc)}" vmlinux >"$kernel/log" 2>&1 ||
    { tail -n 20 "$kernel/log" >&2; give_up "the kernel does not build: $kernel/log"; }
  local root=$folder/guest
  rm -rf "$root"
  mkdir -p "$root"/{proc,sys,dev,tmp}
  gcc -O2 -static -Wall -Wextra -o "$root/init" apps/linux/guest.c apps/linux/memcached.c
  (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) >"$folder/guest.gz"
}

# guest SECONDS ZONE STEP…: all that its console says
guest() {
  local limit=$1 zone=$2 status=0 console=$folder/console
  shift 2
  [ "$zone" = none ] && zone='' || zone=craton=$zone
  watch_script
  "${before[@]}" timeout --foreground "$limit" "$qemu" -accel "$accel" -cpu max -smp "$cpus" -m "$memory" -display none -monitor none -nic none \
    -pidfile "$pid_file" \
    -vga none -no-reboot -serial stdio "${unit_options[@]}" "${options[@]}" -kernel "$kernel/vmlinux" -initrd "$initrd" \
    -append "console=ttyS0 quiet loglevel=6 panic=-1 $parameters $zone -- $*" </dev/null 2>&1 | tee "$console" || status=$?
  leave_script
  if [ "$status" = 124 ]; then
    echo "guest: {\"step\":\"failed\",\"why\":\"the guest did not end within $limit s\"}"
  elif ! grep -qE '"step":"(done|failed)"' "$console"; then
    echo "guest: {\"step\":\"failed\",\"why\":\"the guest ended before its last step; $console has what it said\"}"
  fi
}

lines() { # the guest's JSON
  sed -unE 's/^.*guest: (.*[^\r])\r?$/\1/p'
}

# CONFIG_NR_CPUS is the kernel's limit; it would leave out the others without a word.
check_guest() {
  local most
  most=$(sed -n 's/^CONFIG_NR_CPUS=//p' apps/linux/config)
  [[ $cpus =~ ^[1-9][0-9]{0,3}$ ]] && [ "$cpus" -le "$most" ] ||
    give_up "CPUS=$cpus: the kernel is built for 1 to $most CPUs (CONFIG_NR_CPUS in apps/linux/config)"
  [ "$unit" = time ] || [ "$cpus" = 1 ] || give_up "UNIT=instructions counts the instructions of one CPU: CPUS=$cpus is not 1"
  [[ $memory =~ ^[1-9][0-9]{0,6}[MG]$ ]] || give_up "MEMORY=$memory: MEMORY is a number of MiB or GiB, as 512M or 2G"
  [[ ${JOBS:-1} =~ ^[1-9][0-9]{0,3}$ ]] || give_up "JOBS=$JOBS: a number of make's jobs"
}

before=() options=() unit_options=() parameters=
choose_unit() {
  case "$accel $unit" in
    # Loops that wait for a time would take minutes.
    "tcg instructions") unit_options=(-icount shift=0,sleep=off) parameters="no_timer_check nolapic_timer lpj=4000000" ;;
    "tcg time" | "kvm time") unit_options=() parameters='' ;;
    *) give_up "ACCEL=$accel UNIT=$unit: ACCEL is tcg or kvm, UNIT is time, or with tcg instructions" ;;
  esac
  [ "$accel" = tcg ] || [ -w /dev/kvm ] || give_up "ACCEL=kvm needs a /dev/kvm that you may write to; without ACCEL the guest is emulated"
}

expect() { # TEXT SECONDS ZONE STEP…
  local text=$1 said
  shift
  said=$(guest "$@" | tr -d '\r')
  grep -qE "$text" <<<"$said" || { printf '%s: expected "%s" of %s (%s CPUs, %s), got:\n%s\n' "$0" "$text" "$*" "$cpus" "$memory" "$said" >&2; exit 1; }
  printf '%s\n' "$said"
}

# A guest must say done; with page frames they served both orders, and refused nothing.
passes() { # SECONDS ZONE STEP…
  local said zone=$2
  said=$(expect '"step":"done"' "$@")
  [ "$zone" = none ] && { echo "passes without page frames: $cpus CPUs, $memory: ${*:3}"; return; }
  local order
  for order in 0 9; do
    grep -qE "\"step\":\"counters\",\"order\":$order,\"get\":[1-9]" <<<"$said" || { printf '%s\n%s: page frames served no block of order %s in zone %s\n' "$said" "$0" "$order" "$zone" >&2; exit 1; }
  done
  echo "passes with page frames in $zone: $cpus CPUs, $memory: ${*:3}"
}

# A guest must fail with this text.
finds() { # TEXT ZONE STEP…
  local text=$1 said
  shift
  said=$(expect '"step":"failed"' 120 "$@")
  grep -qE "$text" <<<"$said" || { printf '%s\n%s: expected "%s" of %s\n' "$said" "$0" "$text" "$*" >&2; exit 1; }
  echo "finds what is planted: ${*:2}"
}

refuses() { # TEXT VARIABLE=VALUE: before anything is built
  local said
  if said=$(env "$2" scripts/linux.sh build 2>&1) || ! grep -qF "$1" <<<"$said"; then
    printf '%s: expected "%s" with %s, got:\n%s\n' "$0" "$1" "$2" "$said" >&2
    exit 1
  fi
}

tests() {
  refuses "no-such-qemu is not installed" QEMU=no-such-qemu
  refuses "apt knows no linux-source-0.1" LINUX_PACKAGE=linux-source-0.1
  refuses "ACCEL is tcg or kvm" ACCEL=hvf
  [ -w /dev/kvm ] || refuses "ACCEL=kvm needs a /dev/kvm that you may write to" ACCEL=kvm
  refuses "the kernel is built for 1 to 16 CPUs" CPUS=17
  refuses "MEMORY is a number of MiB or GiB" MEMORY=nonsense
  memory=20M expect "the guest ended before its last step" 60 none fill >/dev/null
  expect "names no zone with memory.*" 60 NoSuchZone fill >/dev/null
  cpus=1 passes 200 DMA32 fill=3 fork=3 files storm oom=3
  cpus=4 passes 300 DMA32 fill=3 fork=3 files storm oom=3
  cpus=4 passes 300 DMA32,all fill=3 fork=3 files storm oom=3
  cpus=2 passes 300 none fill fork files storm oom
  cpus=2 memory=4G passes 500 Normal fill
  cpus=2 expect '"step":"done"' 100 DMA fill fork oom >/dev/null
  finds "cannot be freed: not all of the frames are allocated" DMA32 plant=twice
  finds "the kernel warned" DMA32 plant=in-use
  finds "was written to by another" DMA32 plant=word
}

# With page frames and without, in turns: the paper's figure 12. Instructions of one CPU, or times.
write_benchmark() {
  local zone said most=$cpus
  [ "$accel" = kvm ] || unit=${UNIT:-instructions}
  choose_unit
  [ "$unit" = time ] || most=1
  for ((cpus = 1; cpus <= most; cpus *= 2)); do
    for zone in none DMA32; do
      said=$(expect '"step":"done"' 600 "$zone" "write=${ROUNDS:-3}" | lines)
      [ "$zone" = none ] && zone=buddy || zone=craton
      sed -nE "s/^\{(\"step\":\"(write|counters)\")/{\"allocator\":\"$zone\",\"unit\":\"$unit\",\1/p" <<<"$said"
    done
  done | tee "${1:-/dev/null}"
}

# The guest's first program with Debian's memcached and its libraries, and a disk of zeros.
with_memcached() {
  local memcached root=$folder/memcached
  memcached=$(command -v memcached) || give_up "memcached is not installed; Debian and Ubuntu: apt-get install memcached"
  rm -rf "$root"
  mkdir -p "$root"/{usr/bin,etc}
  cp -L "$memcached" "$root/usr/bin/memcached"
  ldd "$memcached" | grep -oE '/[^ ]+' | while read -r library; do
    mkdir -p "$root${library%/*}"
    cp -L "$library" "$root$library"
  done
  echo 'root:x:0:0::/:/' >"$root/etc/passwd"
  initrd=$folder/with-memcached.gz
  { cat "$folder/guest.gz"; (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1); } >"$initrd"
  options=(-blockdev driver=null-co,node-name=zeros,size=1073741824,read-zeroes=on -device virtio-blk-pci,drive=zeros)
}

# With page frames and without, in turns: the paper's figure 11. Instructions of one CPU, or times.
memcached_benchmark() {
  local zone said
  [ "$accel" = kvm ] || unit=${UNIT:-instructions}
  choose_unit
  with_memcached
  [ "$unit" = time ] || cpus=1
  for zone in none DMA32,all; do
    said=$(expect '"step":"done"' 900 "$zone" "memcached=${TURNS:-18}" | lines)
    [ "$zone" = none ] && zone=buddy || zone=craton
    sed -nE "s/^\{(\"step\":\"(memcached|counters)\")/{\"allocator\":\"$zone\",\"unit\":\"$unit\",\1/p" <<<"$said"
  done | tee "${1:-/dev/null}"
}

# Where the instructions of the write benchmark are spent, on one CPU: the paper's figure 13.
parts() {
  build_plugin
  local zone counts=$folder/parts.txt
  cpus=1
  nm "$kernel/vmlinux" | awk '$2 ~ /[tT]/ { print $1, "0", $3 }' >"$folder/symbols"
  nm -p "$kernel"/mm/page_alloc.o "$kernel"/mm/craton*.o | awk '$2 ~ /[tT]/ { print $3 }' | sort -u >"$folder/allocator"
  for zone in none DMA32; do
    options=(-plugin "$folder/lines.so,out=$counts,lines=addresses")
    expect '"step":"done"' 600 "$zone" write >/dev/null
    local section order
    for section in 0 1; do
      [ "$section" = 0 ] && order=0 || order=9
      { cat "$folder/symbols"; sed -nE "s/^at $section ([0-9a-f]+) ([0-9]+)$/\1 1 \2/p" "$counts"; } | LC_ALL=C sort -k1,2 |
        awk -v order="$order" -v allocator="$([ "$zone" = none ] && echo buddy || echo craton)" -v names="$folder/allocator" '
          BEGIN { while ((getline name <names) > 0) is_its[name] = 1 }
          $2 == "0" { name = $3; next }
          { all += $3; part = "rest of the kernel"
            if ($1 < "8") part = "program"
            else if (name in is_its) part = "page allocator"
            else if (name ~ /^clear_page/) part = "clearing pages"
            sum[part] += $3 }
          END { for (part in sum) printf "{\"step\":\"parts\",\"allocator\":\"%s\",\"order\":%d,\"part\":\"%s\",\"instructions\":%d,\"share\":%.4f}\n", allocator, order, part, sum[part], sum[part] / all }'
    done
  done
}

build_plugin() {
  gcc -O2 -Wall -Wextra -Wno-unused-parameter -shared -fPIC -o "$folder/lines.so" apps/module/lines.c
}

# Memory that the guest does not use goes back to the host: by free-page reporting of virtio-balloon,
# and by page frames' board. One CPU, so that marks enclose all that the guest does.
balloon() {
  command -v strace >/dev/null || give_up "strace is not installed; Debian and Ubuntu: apt-get install strace"
  local target=${CARGO_TARGET_DIR:-target}/kernel way
  CARGO_INCREMENTAL=0 "${CARGO:-cargo}" build -q --release --manifest-path apps/kernel/Cargo.toml --target-dir "$target" -p craton-host
  build_plugin
  file=$(mktemp -p /dev/shm)
  trap 'rm -f "$file"' EXIT
  cpus=1
  for way in none reporting craton; do
    local zone=none steps=(fill idle=6 fill) calls=$folder/$way.calls events=$folder/$way.events counts=$folder/$way.json
    : >"$file"
    before=(strace -f -c --seccomp-bpf -e trace=madvise,fallocate -o "$calls")
    options=(-object "memory-backend-file,id=guest,size=$memory,mem-path=$file,share=on" -machine pc,memory-backend=guest
      -plugin "$folder/lines.so,out=$counts,lines=off" -trace virtio_queue_notify -trace virtio_notify -D "$events")
    case "$way" in
      reporting) options+=(-device virtio-balloon-pci,free-page-reporting=on) ;;
      craton) zone=DMA32 steps=(fill offer fill) before+=("$target/release/craton-host" --well 0 "$file") ;;
    esac
    guest 300 "$zone" "${steps[@]}" | sed -u 's/\r$//' | while read -r line; do
      case "$line" in
        *'"step":"failed"'*) give_up "$line" ;;
        *'"step":"fill"'* | *'"step":"idle"'* | *'"step":"offer"'*)
          echo "{\"way\":\"$way\",\"step\":\"$(sed -E 's/.*"step":"([a-z]*)".*/\1/' <<<"$line")\",\"host_bytes\":$(($(stat -c %b "$file") * 512))}" ;;
      esac
    done
    awk -v way="$way" -v calls="$(awk '$NF == "madvise" || $NF == "fallocate" { sum += $4 } END { print sum + 0 }' "$calls")" \
      -v exits="$(grep -c virtio_queue_notify "$events")" -v interrupts="$(grep -c 'virtio_notify ' "$events")" '
      match($0, /"instructions":[0-9.]*/) { mean = substr($0, RSTART + 15, RLENGTH - 15); count[NR] = mean }
      END { printf "{\"way\":\"%s\",\"step\":\"counts\",\"system_calls\":%d,\"queue_notifications\":%d,\"interrupts\":%d,\"instructions_away\":%.0f,\"instructions_again\":%.0f}\n", way, calls, exits, interrupts, count[2], count[3] }' "$counts"
  done
}

check_usage "${@:-none}"
choose_unit
check_guest
check_tools
. scripts/guest-folder.sh
source=$folder/source kernel=$folder/kernel${DEBUG:+-debug}${DEBIAN:+-debian} initrd=$folder/guest.gz
fetch
build
case "$1" in
  build) ;;
  run)
    guest 600 "${@:2}" | lines | tee "$folder/said"
    grep -q '"step":"done"' "$folder/said" || give_up "the guest did not come to its end; $folder/console has what it said"
    ;;
  write) write_benchmark "${2:-}" ;;
  parts) parts ;;
  memcached) memcached_benchmark "${2:-}" ;;
  balloon) balloon ;;
  test)
    tests
    DEBUG=1 kernel=$folder/kernel-debug
    build
    cpus=4 passes 600 DMA32 fill fork files storm oom
    echo "Linux runs on page frames, and reports what is planted"
    ;;
esac

#!/usr/bin/env bash
# Builds NVAlloc as its authors publish it, for the experiments `nvalloc-…`:
# TARGET/release/peers/nvalloc.so, which writes lines back, and nvalloc-none.so, which does not.
#   [NVALLOC_SOURCE=PATH] scripts/heaps-peer.sh
# NVALLOC_SOURCE is a clone of their repository, for a machine that does not reach GitHub. Their
# code may be used for academic research only. It is compiled with `peers-heaps/nvalloc`, which
# puts its files on tmpfs, below the folder in which it runs.
set -euo pipefail
cd "$(dirname "$0")/.."

origin=https://github.com/ISCS-ZJU/NVAlloc
commit=ff6b0ab
target=${CARGO_TARGET_DIR:-target}
out=$target/release/peers work=$target/heaps-peer
die() {
  echo "heaps-peer: $*" >&2
  exit 1
}
for tool in git cc; do
  command -v "$tool" >/dev/null || die "needs $tool, which is not there; install it"
done
[ "$(uname -m)" = x86_64 ] || die "NVAlloc is written for x86-64, and this machine is $(uname -m)"

source=${NVALLOC_SOURCE:-$origin}
rm -rf "$work"
mkdir -p "$work" "$out"
git clone -q "$source" "$work/source" || die "cannot clone $source; NVALLOC_SOURCE=PATH names a clone of $origin"
git -C "$work/source" checkout -q "$commit" || die "$source has no commit $commit; fetch it from $origin"

cp -r "$work/source/src" "$work/source/include" "$work/"
# Their folder of files, and a kind of mapping that only DAX has.
sed -i 's|/mnt/pmem/nvalloc_files/|nvalloc-files/|; s/0x80003/MAP_SHARED/' "$work"/src/*.c

build() { # NAME FLAG…
  local name=$1
  shift
  cc -O3 -funroll-loops -fPIC -shared -fcommon -w -mclflushopt -mclwb -D_REENTRANT "$@" \
    -include peers-heaps/nvalloc/tmpfs.h -I peers-heaps/nvalloc -I "$work/include" \
    "$work"/src/*.c -o "$out/$name.so.new" -lpthread -lm || die "$name does not build; the reason is above"
  # Under a new name first: a program that runs with the old library keeps it.
  mv "$out/$name.so.new" "$out/$name.so"
  echo "$name: $out/$name.so"
}
flush=()
grep -qw clwb /proc/cpuinfo || flush=(-DNO_CLWB)
build nvalloc "${flush[@]}"
build nvalloc-none -DNO_FLUSH

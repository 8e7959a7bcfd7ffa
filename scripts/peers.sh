#!/usr/bin/env bash
# Builds other allocators as preloadable libraries, for comparison.
#   scripts/peers.sh [NAME…]     default: tcmalloc mimalloc3 mimalloc2 jemalloc snmalloc rpmalloc
#
# Cargo compiles each allocator's own sources, as its crate brings them, to a static library; here that becomes
# target/release/peers/NAME.so, without a line of code between the program and the allocator: where a library has the
# family under names of its own, the linker gives the standard names to the same functions. One that cannot be built, or
# does not serve a program that it is preloaded into, is reported, and the others go on.
set -uo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
target=$(mkdir -p "${CARGO_TARGET_DIR:-target}" && cd "${CARGO_TARGET_DIR:-target}" && pwd)
out=$target/release/peers
all=(tcmalloc mimalloc3 mimalloc2 jemalloc snmalloc rpmalloc)
[ $# -gt 0 ] || set -- "${all[@]}"
for name in "$@"; do
  case " ${all[*]} " in
    *" $name "*) ;;
    *) echo "$0: there is no peer \"$name\" to build; there are: ${all[*]}" >&2 && exit 2 ;;
  esac
done
for tool in cc c++ make; do
  command -v "$tool" >/dev/null || { echo "$0: $tool is not on PATH; install gcc, g++ and make" >&2; exit 1; }
done
mkdir -p "$out"

# The allocator's functions under the standard names, for the linker: standard=own.
aliases() { # NAME
  local pair
  case "$1" in
    tcmalloc)
      for pair in malloc=Malloc free=Free calloc=Calloc realloc=Realloc reallocarray=ReallocArray cfree=Cfree \
        memalign=Memalign posix_memalign=PosixMemalign aligned_alloc=AlignedAlloc valloc=Valloc pvalloc=Pvalloc \
        free_aligned_sized=FreeAlignedSized malloc_usable_size=MallocSize malloc_trim=MallocTrim \
        malloc_stats=MallocStats malloc_info=MallocInfo mallopt=MallOpt mallinfo=MallInfo mallinfo2=MallInfo2 \
        _Znwm=New _Znam=NewArray _ZnwmRKSt9nothrow_t=NewNothrow _ZnamRKSt9nothrow_t=NewArrayNothrow \
        _ZnwmSt11align_val_t=NewAligned _ZnamSt11align_val_t=NewArrayAligned \
        _ZnwmSt11align_val_tRKSt9nothrow_t=NewAlignedNothrow _ZnamSt11align_val_tRKSt9nothrow_t=NewArrayAlignedNothrow \
        _ZdlPv=Delete _ZdaPv=DeleteArray _ZdlPvm=DeleteSized _ZdaPvm=DeleteArraySized \
        _ZdlPvRKSt9nothrow_t=DeleteNothrow _ZdaPvRKSt9nothrow_t=DeleteArrayNothrow \
        _ZdlPvSt11align_val_t=DeleteAligned _ZdaPvSt11align_val_t=DeleteArrayAligned \
        _ZdlPvmSt11align_val_t=DeleteSizedAligned _ZdaPvmSt11align_val_t=DeleteArraySizedAligned; do
        echo "-Wl,--defsym=${pair%=*}=TCMallocInternal${pair#*=}"
      done
      ;;
    snmalloc)
      for pair in malloc free calloc realloc reallocarray cfree memalign posix_memalign aligned_alloc valloc pvalloc \
        malloc_usable_size free_sized free_aligned_sized; do
        echo "-Wl,--defsym=$pair=sn_$pair"
      done
      ;;
  esac
}

# The static library that Cargo's build of the feature NAME left, by what the build scripts report.
archive() { # NAME
  local file=$1 directories
  case "$1" in
    tcmalloc) file=libtcmalloc.a ;;
    mimalloc*) file=libmimalloc.a ;;
    jemalloc) file=lib/libjemalloc_pic.a ;;
    snmalloc) file=libsnmallocshim-rust.a ;;
    rpmalloc) file=librpmalloc.a ;;
  esac
  # rpmalloc's crate has no feature for the standard names; its sources have.
  local flags=${CFLAGS-}
  [ "$1" != rpmalloc ] || flags="$flags -DENABLE_OVERRIDE=1"
  directories=$(CFLAGS=$flags "$cargo" build -q --release --manifest-path peers/Cargo.toml --target-dir "$target/peers" \
    --features "$1" --message-format json | sed -nE 's/.*"reason":"build-script-executed".*"out_dir":"([^"]*)".*/\1/p') || return 1
  while read -r directory; do
    [ ! -f "$directory/$file" ] || { echo "$directory/$file" && return 0; }
  done <<<"$directories"
  echo "no $file among what the crate built" >&2
  return 1
}

build() { # NAME
  local name=$1 archive
  archive=$(archive "$name") || return 1
  [ "$out/$name.so" -nt "$archive" ] && [ "$out/$name.so" -nt scripts/peers.sh ] && [ "$out/$name.so" -nt peers/exports.map ] && return 0
  # C++'s library goes in as well: a C program that preloads the allocator must not pay for another library.
  c++ -shared -O2 -o "$out/$name.so.new" -Wl,--whole-archive "$archive" -Wl,--no-whole-archive \
    -static-libstdc++ -static-libgcc -Wl,--version-script=peers/exports.map $(aliases "$name") -lpthread -ldl || return 1
  prove "$out/$name.so.new" && mv "$out/$name.so.new" "$out/$name.so"
}

# A program that uses the whole family, and says whose it is.
prove() { # LIBRARY
  [ -x "$target/release/craton-probe" ] || "$cargo" build -q --release -p craton-lab --bin craton-probe || return 1
  LD_PRELOAD=$1 GLIBC_TUNABLES=glibc.pthread.rseq=0 "$target/release/craton-probe" "$1" >/dev/null
}

failed=()
for name in "$@"; do
  start=$SECONDS
  if build "$name"; then
    printf '%-10s built in %d s\n' "$name" $((SECONDS - start))
  else
    rm -f "$out/$name.so.new"
    failed+=("$name")
    printf '%-10s failed; why is above\n' "$name"
  fi
done
[ ${#failed[@]} = 0 ] || { echo "$0: not built: ${failed[*]}" >&2; exit 1; }

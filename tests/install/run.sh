#!/usr/bin/env bash
# Installs into a private folder and uses the files as a user would: by pkg-config, by CMake, by the
# program.
#   tests/install/run.sh [--release]     --release: of `make build`; otherwise the tests' build
set -euo pipefail
cd "$(dirname "$0")/../.."
target=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
here=$PWD/tests/install
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
built=$target/release
if [ "${1-}" != --release ]; then
  built=$dir/built
  mkdir "$built"
  ln -s "$target"/debug/craton* "$built"
  ln -sf "$target"/release/libcraton.* "$built"
  # Built by `cargo xtask test`.
  ln -sf "$target"/debug/libcraton_pheap.{so,a} "$built"
fi
fail() { echo "tests/install: $*" >&2; exit 1; }

# DESTDIR: the tree lies below it, but speaks of PREFIX.
PREFIX=/usr/local DESTDIR=$dir/stage scripts/install.sh "$built" >/dev/null
grep -qx 'prefix=/usr/local' "$dir/stage/usr/local/lib/pkgconfig/craton.pc" || fail "craton.pc does not say PREFIX"
! grep -rqF "$dir" "$dir/stage/usr/local/lib/pkgconfig" "$dir/stage/usr/local/lib/cmake" || fail "DESTDIR leaked into an installed file"
! grep -rq '@[A-Z]*@' "$dir/stage/usr/local/lib/pkgconfig" "$dir/stage/usr/local/lib/cmake" || fail "a template was not filled in"
PREFIX=/usr/local DESTDIR=$dir/stage scripts/install.sh --uninstall >/dev/null
left=$(find "$dir/stage" ! -type d)
[ -z "$left" ] || fail "uninstall left: $left"

prefix=$dir/usr
PREFIX=$prefix scripts/install.sh "$built" >/dev/null

# served COMMAND…: runs it, and fails unless its statistics show allocations on Craton.
served() {
  rm -f "$dir/stats"
  CRATON_OPTIONS=stats_file=$dir/stats "$@" >"$dir/out" || fail "$* ended with status $?"
  grep -Eq '"refills": ?[1-9]' "$dir/stats" 2>/dev/null || fail "$* was not served by Craton: no refills in its statistics"
}

served "$prefix/bin/craton" run -- ls "$prefix"
echo "tests/install: the installed program finds its library: ok"

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  read -ra flags <<<"$(pkg-config --cflags --libs craton)"
  gcc -Wall -Werror -o "$dir/shared" "$here/client.c" "${flags[@]}" -Wl,-rpath,"$prefix/lib"
  served "$dir/shared"
  g++ -std=c++17 -Wall -Wextra -Werror -o "$dir/shared-cxx" "$here/client.cpp" "${flags[@]}" -Wl,-rpath,"$prefix/lib"
  served "$dir/shared-cxx"
  read -ra cflags <<<"$(pkg-config --cflags craton)"
  read -ra private <<<"$(pkg-config --static --libs-only-l craton | sed 's/-lcraton //')"
  gcc -Wall -Werror "${cflags[@]}" -o "$dir/static" "$here/client.c" "$prefix/lib/libcraton.a" "${private[@]}"
  ! ldd "$dir/static" | grep -q libcraton || fail "the program linked with libcraton.a still loads libcraton.so"
  served "$dir/static"
  echo "tests/install: C and C++ programs through pkg-config, shared and static: ok"
  read -ra heap_flags <<<"$(pkg-config --cflags --libs craton-pheap)"
  read -ra private <<<"$(pkg-config --static --libs-only-l craton-pheap | sed 's/-lcraton_pheap //')"
  gcc -Wall -Werror -o "$dir/heap" "$here/heap.c" "${heap_flags[@]}" -Wl,-rpath,"$prefix/lib"
  gcc -Wall -Werror "${cflags[@]}" -o "$dir/heap-static" "$here/heap.c" "$prefix/lib/libcraton_pheap.a" "${private[@]}"
  ! ldd "$dir/heap-static" | grep -q libcraton_pheap || fail "the program linked with libcraton_pheap.a still loads the shared one"
  ! ldd "$dir/heap" | grep -q 'libcraton\.so' || fail "libcraton_pheap.so needs libcraton.so"
  [ "$("$dir/heap" "$dir/number.heap")" = 1 ] || fail "heap did not make its file"
  [ "$("$dir/heap-static" "$dir/number.heap")" = 2 ] || fail "heap-static did not find what heap left"
  [ "$(LD_PRELOAD=$prefix/lib/libcraton.so "$dir/heap" "$dir/number.heap")" = 3 ] || fail "heap does not run on Craton's malloc"
  "$prefix/bin/craton" heap check "$dir/number.heap" >/dev/null || fail "craton heap check refuses the file of heap"
  echo "tests/install: C programs with persistent heaps through pkg-config, shared and static: ok"
  # The programs that the documents show, by the language of their code block.
  for page in README.md docs/c.md docs/cpp.md docs/pheap-guide.md; do
    mkdir -p "$dir/shown"
    awk -v to="$dir/shown/$(basename "$page" .md)" '
      /^```(c|cpp)$/ { file = to "-" ++n "." substr($0, 4); next }
      /^```/ { file = "" }
      file { print > file }' "$page"
  done
  for shown in "$dir"/shown/*.*; do
    used=("${flags[@]}")
    [[ $shown != */pheap-guide-* ]] || used=("${heap_flags[@]}")
    case $shown in
      *.c) gcc -Wall -Wextra -Werror -o "$dir/program" "$shown" "${used[@]}" -lpthread -Wl,-rpath,"$prefix/lib" ;;
      *.cpp) g++ -std=c++17 -Wall -Wextra -Werror -o "$dir/program" "$shown" "${used[@]}" -Wl,-rpath,"$prefix/lib" ;;
    esac || fail "$(basename "$shown") of the documents does not compile"
    # Twice: programs with heap files find the first one's.
    for _ in 1 2; do
      (cd "$dir" && ./program >/dev/null) || fail "$(basename "$shown") of the documents ended with status $?"
    done
  done
  echo "tests/install: $(find "$dir/shown" -type f | wc -l) programs of the documents: ok"
else
  echo "tests/install: pkg-config is not here, so it was not tried"
fi

if command -v cmake >/dev/null; then
  for version in 0.1 0.2; do
    mkdir -p "$dir/cmake-$version"
    cmake -S "$here" -B "$dir/cmake-$version" -DCMAKE_PREFIX_PATH="$prefix" -DWANTED="$version" >"$dir/cmake.log" 2>&1 && found=yes || found=no
    case "$version-$found" in
      0.1-yes | 0.2-no) ;;
      *) cat "$dir/cmake.log" >&2 && fail "find_package(craton $version) said $found" ;;
    esac
  done
  cmake --build "$dir/cmake-0.1" >"$dir/cmake.log" 2>&1 || { cat "$dir/cmake.log" >&2; fail "the CMake project did not build"; }
  served "$dir/cmake-0.1/client"
  served "$dir/cmake-0.1/client-static"
  "$dir/cmake-0.1/heap" "$dir/cmake.heap" >/dev/null || fail "the CMake project's heap ended with status $?"
  [ "$("$dir/cmake-0.1/heap-static" "$dir/cmake.heap")" = 2 ] || fail "the CMake project's heap-static did not find the number"
  echo "tests/install: a C program through CMake, shared and static: ok"
else
  echo "tests/install: cmake is not here, so it was not tried"
fi

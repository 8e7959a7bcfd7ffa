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
  echo "tests/install: a C program through CMake, shared and static: ok"
else
  echo "tests/install: cmake is not here, so it was not tried"
fi

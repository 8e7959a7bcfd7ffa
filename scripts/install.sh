#!/usr/bin/env bash
# Installs a release build, or removes it. `make install` and `make uninstall` call this.
#   PREFIX=/usr/local DESTDIR= scripts/install.sh RELEASE_DIR | --uninstall
# PREFIX is where the files will be used, DESTDIR a folder that gets that tree (for packages).
set -euo pipefail
[ $# = 1 ] || { echo "usage: PREFIX=DIR DESTDIR=DIR $0 RELEASE_DIR | --uninstall" >&2; exit 2; }
prefix=${PREFIX:-/usr/local}
[ "${prefix#/}" != "$prefix" ] || { echo "$0: PREFIX must be an absolute path, it is \"$prefix\"" >&2; exit 2; }
root=${DESTDIR-}$prefix
release=
[ "$1" = --uninstall ] || release=$(cd -- "$1" && pwd)
cd "$(dirname "$0")/.."
# In the folders of the repository, so that their links work.
documents=(README.md SECURITY.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE docs/*.md results/speed-means.svg)
tools=(craton-papers craton-work craton-micro craton-drive craton-crash craton-objects craton-wild craton-client craton-heaps)
files=(bin/craton "${tools[@]/#/lib/craton/}" lib/libcraton.so lib/libcraton.a include/craton.h include/craton.hpp
  lib/libcraton_pheap.so lib/libcraton_pheap.a include/craton_pheap.h include/craton_pheap.hpp
  lib/pkgconfig/craton.pc lib/pkgconfig/craton-pheap.pc lib/cmake/craton/craton-config.cmake lib/cmake/craton/craton-config-version.cmake
  share/craton/grafana.json
  "${documents[@]/#/share/doc/craton/}")

if [ "$1" = --uninstall ]; then
  for file in "${files[@]}"; do
    rm -f "$root/$file"
  done
  # Only Craton uses these folders.
  for folder in lib/cmake/craton lib/craton share/craton share/doc/craton/docs share/doc/craton/results share/doc/craton; do
    rmdir "$root/$folder" 2>/dev/null || true
  done
  echo "removed Craton from $root"
  exit 0
fi

version=$(sed -nE '/^\[workspace\.package\]/,/^\[/ s/^version = "(.*)"/\1/p' Cargo.toml)
put() { # MODE FROM TO
  [ -r "$2" ] || { echo "$0: $2 is missing; run \`make build\` first" >&2; exit 1; }
  install -D -m "$1" "$2" "$root/$3"
}
fill() { # TEMPLATE TO
  install -d "$root/$(dirname "$2")"
  sed -e "s|@PREFIX@|$prefix|g" -e "s|@VERSION@|$version|g" "packaging/$1" >"$root/$2"
  chmod 644 "$root/$2"
}
put 755 "$release/craton" bin/craton
for tool in "${tools[@]}"; do
  put 755 "$release/$tool" "lib/craton/$tool"
done
put 755 "$release/libcraton.so" lib/libcraton.so
put 644 "$release/libcraton.a" lib/libcraton.a
put 644 crates/preload/include/craton.h include/craton.h
put 644 crates/preload/include/craton.hpp include/craton.hpp
put 755 "$release/libcraton_pheap.so" lib/libcraton_pheap.so
put 644 "$release/libcraton_pheap.a" lib/libcraton_pheap.a
put 644 crates/pheap-c/include/craton_pheap.h include/craton_pheap.h
put 644 crates/pheap-c/include/craton_pheap.hpp include/craton_pheap.hpp
for document in "${documents[@]}"; do
  put 644 "$document" "share/doc/craton/$document"
done
put 644 packaging/grafana.json share/craton/grafana.json
fill craton.pc.in lib/pkgconfig/craton.pc
fill craton-pheap.pc.in lib/pkgconfig/craton-pheap.pc
fill craton-config.cmake.in lib/cmake/craton/craton-config.cmake
fill craton-config-version.cmake.in lib/cmake/craton/craton-config-version.cmake
printf 'installed %s\n' "${files[@]/#/$root/}"

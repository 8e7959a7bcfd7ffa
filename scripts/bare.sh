#!/usr/bin/env bash
# Builds the crates of pure policy for a machine without a system, and so without a standard
# library: neither they nor their dependencies may need one. Installs the target through rustup
# where it is missing.
#   scripts/bare.sh
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo} target=x86_64-unknown-none
has_core() { compgen -G "$(rustc --print target-libdir --target "$target")/libcore-*" >/dev/null; }
if ! has_core && command -v rustup >/dev/null; then
  rustup target add "$target" || true
fi
if ! has_core; then
  echo "NOT CHECKED: the target $target is missing, and rustup could not install it; \`rustup target add $target\` does" >&2
  exit 0
fi
"$cargo" build --target "$target" -p craton-base -p craton-frames -p craton-frames-c -p craton-pages -p craton-slab
# The build is worth nothing if there is a standard library after all.
if compgen -G "$(rustc --print target-libdir --target "$target")/libstd-*" >/dev/null; then
  echo "there is a standard library for $target: this proves nothing" >&2
  exit 1
fi
echo "base, frames, frames-c, pages and slab do without a standard library"

#!/usr/bin/env bash
# Builds the crates of pure policy for a machine without a system, and so without a standard
# library: neither they nor their dependencies may need one. Then a C program without a C library
# and without SSE links page frames and runs them. Installs the target through rustup where it is
# missing.
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
folder=${CARGO_TARGET_DIR:-target}/bare
"$cargo" build -q --release --manifest-path apps/module/Cargo.toml --target "$target" --target-dir "$folder"
gcc -std=c11 -O2 -Wall -Wextra -Werror -ffreestanding -nostdlib -static -mno-sse -mno-red-zone -Icrates/frames-c/include \
  crates/frames-c/kernel.c "$folder/$target/release/libcraton_module.a" -o "$folder/kernel"
if objdump -d "$folder/kernel" | grep -q '%[xy]mm'; then
  echo "page frames use SSE, which a kernel does not save" >&2
  exit 1
fi
status=0
"$folder/kernel" || status=$?
[ "$status" = 0 ] || { echo "crates/frames-c/kernel.c fails at step $status" >&2; exit 1; }
echo "base, frames, frames-c, pages and slab do without a standard library; a C program without one uses page frames"

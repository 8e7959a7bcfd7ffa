#!/usr/bin/env bash
# Page frames as one assembler file for Linux:  scripts/frames-asm.sh FILE
# Linux 6.1's Rust support is made for an older rustc, so the kernel's build sees no Rust.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo} target=x86_64-unknown-none
folder=$(readlink -m "${CARGO_TARGET_DIR:-target}/linux-guest/rust")

has_core() { compgen -G "$(rustc --print target-libdir --target "$target")/libcore-*" >/dev/null; }
if ! has_core && command -v rustup >/dev/null; then
  rustup target add "$target" || true
fi
has_core || { echo "$0: kernels have no floating point, so Rust's target $target is needed: rustup target add $target" >&2; exit 1; }

# A kernel with mitigations forbids jumps through tables, in all crates.
RUSTFLAGS="-C jump-tables=no" CARGO_INCREMENTAL=0 "$cargo" rustc -q --release --manifest-path apps/module/Cargo.toml --target-dir "$folder" \
  --target "$target" -- -C relocation-model=static -C code-model=kernel -C no-redzone \
  --emit=asm="$folder/frames.s"
# Calls go straight to the function, for there is no table of addresses (GOT). RET is the kernel's
# macro, which mitigations change. The kernel links one section of code; lines and debug sections are dropped.
{
  echo '#include <linux/linkage.h>'
  sed -E 's/\*([A-Za-z0-9_.$]+)@GOTPCREL\(%rip\)/\1/; s/movq\s+([A-Za-z0-9_.$]+)@GOTPCREL\(%rip\)/movq $\1/
    s/^\s*retq?$/\tRET/; s/^\t\.section\t"?\.text[^,]*/\t.section\t.text/; /^\s*\.(file|loc)\s/d; s/^\s*#.*//' "$folder/frames.s" |
    awk '/^\t\.(section|text|data|bss)/ { skip = $0 ~ /\.debug_/ } !skip'
} >"$1"

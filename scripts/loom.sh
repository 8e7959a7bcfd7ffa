#!/usr/bin/env bash
# Protocols between threads in every order of their steps (crates/*/tests/loom_*.rs), in a separate
# target folder.
#   scripts/loom.sh [-p PACKAGE] [part of a test's name]
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
packages=(--workspace)
if [ "${1-}" = -p ]; then
  packages=(-p "${2:?usage: scripts/loom.sh [-p PACKAGE] [NAME]}")
  shift 2
fi
target=$(readlink -m "${CARGO_TARGET_DIR:-target}")
# Thousands of runs: optimised, and with debug assertions.
export CARGO_PROFILE_DEV_OPT_LEVEL=2
export RUSTFLAGS="${RUSTFLAGS:+$RUSTFLAGS }--cfg loom" CARGO_TARGET_DIR=$target/loom
exec "$cargo" test -q "${packages[@]}" --test 'loom*' --no-fail-fast -- "$@"

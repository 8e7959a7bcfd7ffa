#!/usr/bin/env bash
# The repository's checks and tests, stage by stage, with the time of each.
#   scripts/test.sh check      format, tidy, lints, unit tests
#   scripts/test.sh [test]     every check and test that a change must pass
#   scripts/test.sh nightly    also those that take minutes or hours
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
mode=${1:-test}
case "$mode" in
  check | test) ;;
  nightly) export PROPTEST_CASES=${PROPTEST_CASES:-5000} CRATON_FULL=1 ;;
  *) echo "usage: $0 [check|test|nightly]" >&2; exit 2 ;;
esac

times=()
cpu() { # seconds that all children have computed
  local stat
  read -ra stat </proc/$$/stat
  echo $(((stat[15] + stat[16]) / $(getconf CLK_TCK)))
}
stage() { # NAME COMMAND…
  local name=$1 start=$SECONDS before status=0
  before=$(cpu)
  shift
  printf '\n== %s\n' "$name"
  "$@" || status=$?
  times+=("$(printf '%-28s %4d s, %4d s of computing' "$name" $((SECONDS - start)) $(($(cpu) - before)))")
  if [ "$status" != 0 ]; then
    printf '\n%s\n' "${times[@]}"
    echo "make $mode: stage \"$name\" failed with status $status: $*" >&2
    exit 1
  fi
}

[ "$mode" = check ] || stage "what the tests need" scripts/install-test-deps.sh
stage "format" "$cargo" fmt --all --check
stage "format of experiments" "$cargo" fmt --all --check --manifest-path papers/Cargo.toml
stage "tidy" "$cargo" xtask tidy
stage "lints" "$cargo" clippy -q --workspace --all-targets -- -D warnings
if [ "$mode" != check ]; then
  papers=(--manifest-path papers/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}")
  stage "lints of experiments" "$cargo" clippy -q "${papers[@]}" --all-targets -- -D warnings
fi
case "$mode" in
  check) stage "unit tests" "$cargo" xtask test --units ;;
  test) stage "tests" "$cargo" xtask test ;;
  nightly) stage "tests in full" "$cargo" xtask test --nightly ;;
esac
if [ "$mode" != check ]; then
  library=$(readlink -m "${CARGO_TARGET_DIR:-target}")/release/libcraton.so
  stage "fast paths" env CRATON_LIBRARY="$library" "$cargo" xtask golden
  stage "without a standard library" scripts/bare.sh
  stage "bare-metal guest" scripts/kernel.sh test
  stage "installed files" tests/install/run.sh
  stage "book" scripts/book.sh
fi
if [ "$mode" = nightly ]; then
  stage "Linux module" scripts/kernel-module.sh test
  stage "Linux on page frames" scripts/linux.sh test
  stage "page in a browser" scripts/serve-browser.sh
  stage "release build" make --no-print-directory build
  stage "installed release" tests/install/run.sh --release
fi
printf '\n%s\n' "${times[@]}"
echo "make $mode: all passed in $SECONDS s"

#!/usr/bin/env bash
# Every check and test of the repository, one stage after the other, with the time each took.
#   scripts/test.sh [--full]     --full: many more cases in the randomized tests
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
case "${1-}" in
  "") ;;
  --full) export PROPTEST_CASES=${PROPTEST_CASES:-5000} CRATON_FULL=1 ;;
  *) echo "usage: $0 [--full]" >&2; exit 2 ;;
esac

times=()
stage() { # NAME COMMAND…
  local name=$1 start=$SECONDS status=0
  shift
  printf '\n== %s\n' "$name"
  "$@" || status=$?
  times+=("$(printf '%-28s %4d s' "$name" $((SECONDS - start)))")
  if [ "$status" != 0 ]; then
    printf '\n%s\n' "${times[@]}"
    echo "make test: stage \"$name\" failed with status $status: $*" >&2
    exit 1
  fi
}

stage "what the tests need" scripts/install-test-deps.sh
stage "format" "$cargo" fmt --all --check
papers=(--manifest-path papers/Cargo.toml --target-dir "${CARGO_TARGET_DIR:-target}/papers")
stage "format of the experiments" "$cargo" fmt --all --check --manifest-path papers/Cargo.toml
stage "tidy" "$cargo" xtask tidy
stage "clippy" "$cargo" clippy -q --workspace --all-targets -- -D warnings
stage "clippy of the experiments" "$cargo" clippy -q "${papers[@]}" --all-targets -- -D warnings
stage "release build" make --no-print-directory build
stage "tests" "$cargo" test --workspace --no-fail-fast
stage "tests of the experiments" "$cargo" test "${papers[@]}" --no-fail-fast
on_frames=(conformance large limited misuse own)
[ -z "${CRATON_FULL-}" ] || on_frames=('*')
stage "programs on frames" env CRATON_TEST_OPTIONS=page_heap=frames \
  "$cargo" test -p craton-programs --no-fail-fast "${on_frames[@]/#/--test=}"
stage "without a standard library" scripts/bare.sh
stage "every order of the steps" scripts/loom.sh
stage "installed files" tests/install/run.sh
printf '\n%s\n' "${times[@]}"
echo "all passed in $SECONDS s"

#!/usr/bin/env bash
# Fuzzes the page heap with libFuzzer, guided by coverage, on the stable compiler, without
# cargo-fuzz.
#   scripts/fuzz.sh [SECONDS]     default: 60
# Inputs with new coverage are in fuzz/corpus/, failed ones in fuzz/artifacts/: run the program
# named at the end with one as its argument to see it fail again.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"
name=pages seconds=${1-60}
case "$seconds" in
  "" | *[!0-9]*) echo "usage: scripts/fuzz.sh [SECONDS]; \"$seconds\" is no number" >&2; exit 2 ;;
esac

# cargo-fuzz's flags. With a named target, they do not apply to build scripts.
host=$(rustc -vV | sed -n 's/^host: //p')
sancov=(level=4 inline-8bit-counters pc-table trace-compares)
export RUSTFLAGS="--cfg fuzzing -Cpasses=sancov-module -Ccodegen-units=1 ${sancov[*]/#/-Cllvm-args=-sanitizer-coverage-}"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/$name
"${CARGO:-cargo}" build --release --target "$host" --target-dir "$target"

mkdir -p "corpus/$name" "artifacts/$name"
run=$target/$host/release/pages
status=0
"$run" -max_total_time="$seconds" -max_len=4096 -artifact_prefix="artifacts/$name/" -print_final_stats=1 \
  "corpus/$name" || status=$?
echo "fuzzed by $run"
exit "$status"

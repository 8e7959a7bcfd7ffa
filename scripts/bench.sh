#!/usr/bin/env bash
# Runs the lab's experiments in full on every peer found, and renews results/ and the README's
# table.
#   scripts/bench.sh [EXPERIMENT…]     default: all of `craton lab list`
# Each writes its tables results/NAME.txt, its pictures results/NAME*.svg, and every run to
# results/NAME.json, which git ignores. A failed row is in the record, and does not stop the script.
set -uo pipefail
cd "$(dirname "$0")/.."
# A relative path: the command is part of the record.
craton=${CARGO_TARGET_DIR:-target}/release/craton
[ -x "$craton" ] || { echo "$0: $craton is not built; run \`make build\` first" >&2; exit 1; }
if [ $# = 0 ]; then
  mapfile -t experiments < <("$craton" lab list | cut -d ' ' -f 1)
  set -- "${experiments[@]}"
fi
status=0
for name in "$@"; do
  "$craton" lab run "$name" --json "results/$name.json" --svg results | tee "results/$name.txt" || status=1
done
"${CARGO:-cargo}" xtask tidy --fix || status=1
exit "$status"

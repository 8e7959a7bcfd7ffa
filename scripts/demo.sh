#!/usr/bin/env bash
# `craton compare` on the bundled server-like workload and on whichever of python3, sqlite3 and redis-server is here.
#   scripts/demo.sh [--runs N] [--json DIR]     N runs of each (default 3); one DIR/NAME.json for each comparison
set -euo pipefail
cd "$(dirname "$0")/.."
runs=3
json=
while [ $# -gt 0 ]; do
  case "$1" in
    --runs) runs=${2:?--runs wants a number} && shift 2 ;;
    --json) json=${2:?--json wants a folder} && shift 2 ;;
    *) echo "usage: $0 [--runs N] [--json DIR]" >&2 && exit 2 ;;
  esac
done
release=${CARGO_TARGET_DIR:-target}/release
for built in craton libcraton.so craton-work craton-real craton-drive; do
  [ -e "$release/$built" ] || { echo "$0: $release/$built is not built; run \`make build\` first" >&2; exit 1; }
done
[ -z "$json" ] || mkdir -p "$json"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

compare() { # NAME WHAT COMMAND…
  local name=$1 what=$2
  shift 2
  printf '\n== %s: %s\n' "$name" "$what"
  "$release/craton" compare --runs "$runs" ${json:+--json "$json/$name.json"} -- "$@"
}
absent=()

compare server "the bundled server-like workload" "$release/craton-work" server

# What each of them does: `craton-real list`.
for name in python3 sqlite3 redis-set redis-list; do
  if said=$("$release/craton-real" prepare "$name" "$dir" 2>&1); then
    mapfile -t load <<<"$said"
    compare "$name" "a load of seconds; see crates/lab/src/real/$name.sh" "${load[@]}"
  else
    absent+=("$said")
  fi
done

for why in "${absent[@]}"; do
  printf '\nnot compared: %s\n' "$why"
done

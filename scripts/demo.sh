#!/usr/bin/env bash
# `craton compare` on the bundled server-like workload, and on those of python3, sqlite3 and
# redis-server found here. Peers need `make peers`; this uses glibc alone.
#   scripts/demo.sh [--runs N]     N rounds of each (default 3)
set -euo pipefail
cd "$(dirname "$0")/.."
runs=3
while [ $# -gt 0 ]; do
  case "$1" in
    --runs) runs=${2:?--runs wants a number} && shift 2 ;;
    *) echo "usage: $0 [--runs N]" >&2 && exit 2 ;;
  esac
done
release=${CARGO_TARGET_DIR:-target}/release
for built in craton libcraton.so craton-work craton-real craton-drive; do
  [ -e "$release/$built" ] || { echo "$0: $release/$built is not built; run \`make build\` first" >&2; exit 1; }
done
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

compare() { # NAME WHAT COMMAND…
  printf '\n== %s: %s\n' "$1" "$2"
  shift 2
  "$release/craton" compare --peers none --runs "$runs" -- "$@"
}
absent=()

compare server "the bundled server-like workload" "$release/craton-work" server

# What each of them does: `craton-real list`.
for name in python3 sqlite3 redis-set redis-list; do
  if said=$("$release/craton-real" prepare "$name" "$dir" 2>&1); then
    mapfile -t load <<<"$said"
    compare "$name" "a load of seconds; see papers/src/real/$name.sh" "${load[@]}"
  else
    absent+=("$said")
  fi
done

for why in "${absent[@]}"; do
  printf '\nnot compared: %s\n' "$why"
done

#!/usr/bin/env bash
# Tests the page of `craton serve` in a real browser: Debian's chromium, driven by playwright-core,
# which npm installs into target/tools. Screenshots are written to target/serve-pictures.
#   scripts/serve-browser.sh [CRATON]     CRATON: the program; by default it is built here
set -euo pipefail
cd "$(dirname "$0")/.."
target=$(readlink -m "${CARGO_TARGET_DIR:-target}")
version=1.65.1
for program in chromium node npm gcc; do
  command -v "$program" >/dev/null || { echo "$0: $program is missing; Debian's package has the same name" >&2; exit 1; }
done
tools=$target/tools/browser
if ! grep -qs "\"version\": \"$version\"" "$tools/node_modules/playwright-core/package.json"; then
  mkdir -p "$tools"
  echo '{ "private": true }' >"$tools/package.json"
  npm install --silent --no-audit --no-fund --prefix "$tools" "playwright-core@$version"
fi
craton=${1-}
if [ -z "$craton" ]; then
  "${CARGO:-cargo}" build -q -p craton-cli
  craton=$target/debug/craton
fi
export CRATON_LIBRARY=${CRATON_LIBRARY:-$target/release/libcraton.so}
[ -r "$CRATON_LIBRARY" ] || { echo "$0: $CRATON_LIBRARY is missing; \`make build\` makes it" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
gcc -g -O1 -fno-omit-frame-pointer -o "$folder/demo" crates/serve/tests/demo.c
mkdir -p "$target/serve-pictures"
BROWSER_TOOLS=$tools CHROMIUM=$(command -v chromium) \
  node crates/serve/tests/browser.mjs "$craton" "$folder/demo" "$target/serve-pictures"

#!/usr/bin/env bash
# Builds LLFree as its authors publish it, for the experiments `llfree-…`:
# TARGET/release/peers/llfree4.so with 4 huge frames a tree, their default, and llfree32.so with the
# paper's 32.
#   [LLFREE_SOURCE=PATH] scripts/frames-peer.sh
# LLFREE_SOURCE is a clone of their repository, for a machine that does not reach GitHub.
# peers-frames/llfree/Cargo.lock fixes the commit either way. Quick when nothing changed.
set -euo pipefail
cd "$(dirname "$0")/.."

: "${CARGO:=cargo}"
manifest=peers-frames/llfree/Cargo.toml
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
out=$target/release/peers
origin=$(sed -nE 's/^llfree = \{ git = "([^"]+)".*/\1/p' "$manifest")
commit=$(sed -nE 's/^llfree = .* rev = "([0-9a-f]{40})".*/\1/p' "$manifest")
die() {
  echo "frames-peer: $*" >&2
  exit 1
}
[ -n "$origin" ] && [ -n "$commit" ] || die "$manifest names no repository and commit of llfree"

if [ -n "${LLFREE_SOURCE-}" ]; then
  command -v git >/dev/null || die "LLFREE_SOURCE needs git, which is not there; install it"
  source=$(cd "$LLFREE_SOURCE" 2>/dev/null && pwd) || die "LLFREE_SOURCE: there is no folder $LLFREE_SOURCE"
  directory=$(git -C "$source" rev-parse --absolute-git-dir 2>/dev/null) ||
    die "LLFREE_SOURCE: $source is no clone of $origin (git finds no repository there)"
  git -C "$source" cat-file -e "$commit^{commit}" 2>/dev/null ||
    die "LLFREE_SOURCE: $source has no commit $commit; fetch it from $origin"
  # Cargo asks git for the repository at GitHub, and git is redirected, so the lock file holds for
  # both.
  export CARGO_NET_GIT_FETCH_WITH_CLI=true
  count=${GIT_CONFIG_COUNT:-0}
  export "GIT_CONFIG_KEY_$count=url.file://$directory.insteadOf" "GIT_CONFIG_VALUE_$count=$origin"
  export "GIT_CONFIG_KEY_$((count + 1))=uploadpack.allowAnySHA1InWant" "GIT_CONFIG_VALUE_$((count + 1))=true"
  export GIT_CONFIG_COUNT=$((count + 2))
fi

build() { # NAME FEATURE…
  local name=$1 linked=$target/frames-peer/$1/release/libframes_peer_llfree.so
  shift
  "$CARGO" build --release --locked --manifest-path "$manifest" --target-dir "$target/frames-peer/$name" "$@" ||
    die "$name does not build; the reason is above. Where $origin is out of reach, LLFREE_SOURCE=PATH names a clone of it"
  # Under a new name first: a program that runs with the old library keeps it.
  [ "$out/$name.so" -nt "$linked" ] || { cp "$linked" "$out/$name.so.new" && mv "$out/$name.so.new" "$out/$name.so"; }
  echo "$name: $out/$name.so"
}

mkdir -p "$out"
build llfree4
build llfree32 --features trees32

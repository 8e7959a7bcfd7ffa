#!/usr/bin/env bash
# Builds other allocators as libraries to preload, for `craton compare`, and checks each.
#   scripts/peers.sh [NAME…]     the folders of peers/; default: all
# Writes TARGET/release/peers/NAME.so. A peer that fails to build, load or pass the check is
# reported and not installed; the others go on, and the exit status is 1. Quick if nothing changed.
set -uo pipefail
cd "$(dirname "$0")/.."

: "${CARGO:=cargo}"
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$PWD/$target ;; esac
out=$target/release/peers
log=$(mktemp) && trap 'rm -f "$log"' EXIT

known=()
for manifest in peers/*/Cargo.toml; do
  known+=("$(basename "$(dirname "$manifest")")")
done
peers=("$@")
[ $# != 0 ] || peers=("${known[@]}")
for peer in "${peers[@]}"; do
  if [[ " ${known[*]} " != *" $peer "* ]]; then
    echo "peers: \`$peer\` is not one; there are ${known[*]}" >&2
    exit 2
  fi
done

# The compilers and make, for jemalloc's build: scripts/install-test-deps.sh installs them.
for tool in cc c++ make; do
  if ! command -v "$tool" >/dev/null; then
    scripts/install-test-deps.sh || exit 1
    break
  fi
done

# Builds the archive of peer $1, and links $2 from it unless $2 is newer than its sources.
build() {
  local peer=$1 library=$2 archive=$target/peers/release/libpeer_${1//-/_}.a
  CARGO_TARGET_DIR=$target/peers "$CARGO" build --release --locked --manifest-path peers/Cargo.toml -p "peer-$peer" || return
  if [ "$library" -nt "$archive" ] && [ "$library" -nt peers/exports.map ] && [ "$library" -nt "peers/$peer/names.ld" ] &&
    [ "$library" -nt scripts/peers.sh ]; then
    return
  fi
  c++ -shared -o "$library" -Wl,-soname,"$peer.so" -Wl,--gc-sections -Wl,--as-needed \
    -Wl,--version-script=peers/exports.map "peers/$peer/names.ld" "$archive" -lpthread -ldl -lm
}

# The program that looks whether a library serves the whole family.
probe=$target/release/craton-probe
if ! "$CARGO" build -q --release -p craton-lab --bin craton-probe; then
  echo "peers: cannot build craton-probe, which checks them" >&2
  exit 1
fi

mkdir -p "$out" "$target/peers/linked"
failed=()
for peer in "${peers[@]}"; do
  linked=$target/peers/linked/$peer.so
  if ! build "$peer" "$linked" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "$peer: does not build; the last lines are above" >&2
  elif ! GLIBC_TUNABLES=glibc.pthread.rseq=0 LD_PRELOAD=$linked timeout 60 "$probe" "$linked" >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    echo "$peer: builds, but a program that it is preloaded to does not find all it needs; its last lines are above" >&2
  else
    # Under a new name first: a program that runs with the old library keeps it.
    [ "$out/$peer.so" -nt "$linked" ] || { cp "$linked" "$out/$peer.so.new" && mv "$out/$peer.so.new" "$out/$peer.so"; }
    echo "$peer: $out/$peer.so"
    continue
  fi
  rm -f "$out/$peer.so"
  failed+=("$peer")
done
if [ ${#failed[@]} != 0 ]; then
  echo "peers: not there: ${failed[*]}" >&2
  exit 1
fi

#!/usr/bin/env bash
# A redis-server under a bounded load, as one command: starts a private server on a unix socket, loads it, shuts it down.
#   scripts/redis-load.sh [REQUESTS]     requests for each of the operations below; default 150000
#
# Debian's redis-server links libjemalloc.so.2 and calls plain malloc, calloc, realloc, free and malloc_usable_size in it.
# A preloaded library comes first in the order of look-up, so it serves these calls; what stays with the idle jemalloc is
# mallctl, by which redis prints allocator statistics: INFO's mem_allocator and allocator_* then describe jemalloc still.
# Where nothing is preloaded, the server would run on jemalloc, not on the C library: libc.so.6 is preloaded for it, so
# that a comparison with glibc compares with glibc.
set -euo pipefail
requests=${1:-150000}
for command in redis-server redis-cli redis-benchmark; do
  command -v "$command" >/dev/null || { echo "$0: $command is not on PATH; install redis-server and redis-tools" >&2; exit 1; }
done
dir=$(mktemp -d)
server=
finish() {
  [ -z "$server" ] || kill "$server" 2>/dev/null || true
  rm -rf "$dir"
}
trap finish EXIT
socket=$dir/redis

LD_PRELOAD=${LD_PRELOAD:-libc.so.6} redis-server --port 0 --unixsocket "$socket" --dir "$dir" --save '' --appendonly no \
  --daemonize no >"$dir/log" 2>&1 &
server=$!
for ((i = 0; i < 500; i++)); do
  [ -S "$socket" ] && break
  kill -0 "$server" 2>/dev/null || break
  sleep 0.01
done
if [ "$(redis-cli -s "$socket" ping 2>&1)" != PONG ]; then
  cat "$dir/log" >&2
  echo "$0: redis-server did not answer on its socket; its log is above" >&2
  exit 1
fi

# Values of several sizes, more keys than fit a cache, and structures that grow: each is a different set of size classes.
bench() { redis-benchmark -s "$socket" -q -n "$requests" -P 32 -c 16 "$@" >/dev/null; }
bench -r 100000 -d 32 -t set
bench -r 100000 -d 400 -t set,get
bench -r 1000 -d 64 -t lpush,lpop,sadd
bench -r 20000 -d 100 -t hset

redis-cli -s "$socket" shutdown nosave >/dev/null 2>&1 || true
wait "$server"
server=

#!/usr/bin/env bash
# db_bench of RocksDB: keys in random order are written to a data base in DIR, then read.
#
# Debian's db_bench and librocksdb link no allocator: by LD_DEBUG=bindings malloc, free,
# posix_memalign and malloc_usable_size are the C library's and operator new libstdc++'s, or the
# preloaded ones. A full run has four million requests, nearly all of less than 4 KiB. The number of
# found keys follows from the seed: it must equal the number without a preloaded allocator. One
# thread writes, others flush and compact.
source "${BASH_SOURCE[0]%/*}/common.sh"
bench() { # COMMAND-BEFORE: prints the number of keys found
  plain rm -rf "$name.db"
  "$@" db_bench --db="$name.db" --benchmarks=fillrandom,readrandom,verifychecksum --seed=1 --threads=1 \
    --num="$(sized 20000 180000)" --write_buffer_size=4194304 --compression_type=none --value_size=100 \
    >"$name.log" 2>&1 || fail "db_bench failed; see $dir/$name.log"
  plain sed -nE 's/^readrandom .*\(([0-9]+ of [0-9]+) found\).*/\1/p' "$name.log"
  plain rm -rf "$name.db"
}
case "$verb" in
  prepare)
    bench plain >"$name.expected"
    [ -s "$name.expected" ] || fail "db_bench did not say how many keys it found; see $dir/$name.log"
    measure_script
    ;;
  run)
    bench command >"$name.found"
    same "$name.found" "$name.expected"
    ;;
  *) fail "$verb: give prepare or run" ;;
esac

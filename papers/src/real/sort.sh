#!/usr/bin/env bash
# sort of the coreutils: a file of numbered lines in mixed order, with two threads.
#
# sort allocates one buffer that holds the whole file, and divides it into lines: a dozen requests
# in all. Allocators differ in the buffer's pages. The order must be the one in which the lines were
# numbered.
source "${BASH_SOURCE[0]%/*}/common.sh"
lines=$(sized 300000 1500000)
case "$verb" in
  prepare)
    # 7919 is prime and does not divide the number of lines: each number occurs once.
    number() { awk -v n="$lines" -v step="$1" 'BEGIN { for (i = 0; i < n; i++)
      { k = i * step % n; printf "%08d line of %d, %s\n", k, n, substr("some more letters of many", k % 23) } }'; }
    number 7919 >"$name.in"
    number 1 >"$name.expected"
    measure_script
    ;;
  run)
    sort --parallel=2 --buffer-size=512M -o "$name.out" "$name.in"
    same "$name.out" "$name.expected"
    ;;
  *) fail "$verb: give prepare or run" ;;
esac

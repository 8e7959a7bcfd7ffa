#!/usr/bin/env bash
# memcached: values from 16 bytes to 8 KiB under random keys, overwritten, read and deleted, by its
# text protocol.
#
# By LD_DEBUG=bindings it calls the C library's malloc, calloc, realloc, free and posix_memalign, or
# the preloaded ones. It allocates slab pages of 1 MiB and divides them into values: a full run has
# 170 requests in all, 59 MB. Allocators differ in the pages below those. 1 GiB, the limit of its
# values, is never reached: it drops none.
source "${BASH_SOURCE[0]%/*}/common.sh"
case "$verb" in
  prepare) measure_script ;;
  run)
    user=()
    [ "$EUID" != 0 ] || user=(-u root)
    serve "$name.sock" "$(sized 100000 700000)" memcached -s "$name.sock" -A -m 1024 -t 2 -U 0 "${user[@]}"
    ;;
  *) fail "$verb: give prepare or run" ;;
esac

#!/usr/bin/env bash
# memcached: values from 16 bytes to 8 KiB under random keys, overwritten, read and deleted, by its text protocol.
#
# memcached calls the C library's malloc, or what is preloaded (LD_DEBUG=bindings). It asks for slab pages of 1 MiB and
# cuts the values out of them by itself: the allocator sees few, large requests, and its hash table. What differs between
# allocators is mostly on what pages those lie. 1 GiB is the limit of its values, never reached: it drops none.
source "$(dirname "$0")/common.sh"
case "$verb" in
  prepare) measure_script ;;
  run)
    user=()
    [ "$(id -u)" != 0 ] || user=(-u root)
    serve "$name.sock" "$(sized 100000 700000)" memcached -s "$name.sock" -A -m 1024 -t 2 -U 0 "${user[@]}"
    ;;
  *) fail "$verb: give prepare or run" ;;
esac

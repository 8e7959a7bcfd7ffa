#!/usr/bin/env bash
# redis-server: requests that push five elements to a list and read those five.
#
# Debian's redis-server links libjemalloc.so.2 and calls plain malloc, calloc, realloc, free and
# malloc_usable_size. A preloaded library precedes it: by LD_DEBUG=bindings all five are bound to
# it, also in the libraries that redis links. Only mallctl stays with the idle jemalloc: INFO's
# mem_allocator and allocator_* still describe jemalloc. With nothing preloaded the server would run
# on jemalloc, not on the C library: libc.so.6 is preloaded then, so that a comparison with glibc
# compares with glibc. A library that serves malloc but not malloc_usable_size breaks redis:
# jemalloc would be asked about foreign memory.
source "${BASH_SOURCE[0]%/*}/common.sh"
case "$verb" in
  prepare) measure_script ;;
  run)
    export LD_PRELOAD=${LD_PRELOAD:-libc.so.6}
    serve "$name.sock" "$(sized 60000 450000)" \
      redis-server --port 0 --unixsocket "$name.sock" --dir . --save '' --appendonly no --daemonize no
    ;;
  *) fail "$verb: give prepare or run" ;;
esac

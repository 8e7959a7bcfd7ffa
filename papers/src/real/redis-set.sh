#!/usr/bin/env bash
# redis-server: values from 16 bytes to 8 KiB under random keys, overwritten, read and deleted.
# For its allocator, and libc.so.6 where nothing is preloaded, see redis-list.sh.
source "${BASH_SOURCE[0]%/*}/common.sh"
case "$verb" in
  prepare) measure_script ;;
  run)
    export LD_PRELOAD=${LD_PRELOAD:-libc.so.6}
    serve "$name.sock" "$(sized 100000 800000)" \
      redis-server --port 0 --unixsocket "$name.sock" --dir . --save '' --appendonly no --daemonize no
    ;;
  *) fail "$verb: give prepare or run" ;;
esac

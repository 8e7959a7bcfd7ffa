# Functions of all loads, which source this file.
#   bash NAME.sh prepare DIR SIZE DRIVE   writes inputs into DIR; prints the command, a word a line
#   bash NAME.sh run DIR SIZE DRIVE       the command of loads that are more than one program
# SIZE is quick or full. DRIVE is the program craton-drive, for loads with a server.
#
# All files are below DIR, with the load's name. A wrong result is exit status 1 and a line on
# standard error. Work beside the load, such as comparing files, runs by `plain`, without the
# preloaded allocator. (The shell does run on the allocator: 4 MB and some milliseconds.)
set -euo pipefail
export LC_ALL=C
name=${0##*/}
name=${name%.sh}
self=$0
[[ $self == /* ]] || self=$PWD/$self
fail() { echo "$name: $*" >&2; exit 1; }
[ $# = 4 ] || fail "usage: bash $name.sh prepare|run DIR quick|full DRIVE"
verb=$1 dir=$2 size=$3 drive=$4
[ "$size" = quick ] || [ "$size" = full ] || fail "size $size: give quick or full"
cd "$dir"
dir=$PWD
export TMPDIR=$dir

# The command without a preloaded library, and without what allocators are set by.
plain() { env -u LD_PRELOAD -u GLIBC_TUNABLES -u CRATON_OPTIONS "$@"; }

# The first word for a quick run, the second for a full one.
sized() { if [ "$size" = quick ]; then echo "$1"; else echo "$2"; fi; }

# Prints the command to measure.
measure() { printf '%s\n' "$@"; }

# The command by which this script runs its load.
measure_script() { measure bash "$self" run "$dir" "$size" "$drive"; }

# Fails unless two files are the same.
same() { # FILE EXPECTED
  plain cmp -- "$1" "$2" >&2 || fail "$1 is not what it is without a preloaded allocator"
}

# Starts a server that the load generator drives and ends. It never outlives this script.
serve() { # SOCKET REQUESTS COMMAND…
  local socket=$1 requests=$2 status=0
  shift 2
  plain rm -f "$socket"
  trap '{ kill -KILL "$server" && wait "$server"; } 2>/dev/null || true' EXIT
  trap 'exit 143' TERM INT
  "$@" >"$name.log" 2>&1 &
  server=$!
  plain "$drive" "$name" --socket "$socket" --server "$server" --requests "$requests" --end || {
    tail -n 5 "$name.log" >&2
    fail "the server failed under its load; the end of its log is above"
  }
  wait "$server" || status=$?
  trap - EXIT
  [ "$status" = 0 ] || fail "the server left with status $status"
}

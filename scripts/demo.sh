#!/usr/bin/env bash
# `craton compare` on the bundled server-like workload and on whichever of python3, redis-server and sqlite3 is here.
#   scripts/demo.sh [--runs N] [--json DIR]     N runs of each (default 3); one DIR/NAME.json for each comparison
set -euo pipefail
cd "$(dirname "$0")/.."
runs=3
json=
while [ $# -gt 0 ]; do
  case "$1" in
    --runs) runs=${2:?--runs wants a number} && shift 2 ;;
    --json) json=${2:?--json wants a folder} && shift 2 ;;
    *) echo "usage: $0 [--runs N] [--json DIR]" >&2 && exit 2 ;;
  esac
done
release=${CARGO_TARGET_DIR:-target}/release
for built in craton libcraton.so craton-work; do
  [ -e "$release/$built" ] || { echo "$0: $release/$built is not built; run \`make build\` first" >&2; exit 1; }
done
[ -z "$json" ] || mkdir -p "$json"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

compare() { # NAME WHAT COMMAND…
  local name=$1 what=$2
  shift 2
  printf '\n== %s: %s\n' "$name" "$what"
  "$release/craton" compare --runs "$runs" ${json:+--json "$json/$name.json"} -- "$@"
}
absent=()

compare server "the bundled server-like workload" "$release/craton-work" server

# The system's python3 where there is one: a version manager's stand-in on PATH is a shell script.
python=$(PATH=/usr/bin:/bin command -v python3 || command -v python3 || true)
if [ -n "$python" ]; then
  cat >"$dir/load.py" <<'PY'
live = {}
for round in range(12):
    words = ["word-%d-%d" % (round, i) for i in range(40000)]
    index = {word: [i, str(i) * (i % 7), {"n": i}] for i, word in enumerate(words)}
    live[round % 3] = {word: index[word] for word in words[::4]}
    joined = " ".join(sorted(words, key=lambda word: word[::-1]))
    assert len(joined.split()) == len(words)
print(sum(len(kept) for kept in live.values()))
PY
  # Python's own small-object allocator would hide the load from any malloc.
  PYTHONMALLOC=malloc compare python3 "dicts and lists of strings (PYTHONMALLOC=malloc)" "$python" -c "$(cat "$dir/load.py")"
else
  absent+=(python3)
fi

if command -v sqlite3 >/dev/null; then
  {
    echo "create table t (id integer primary key, name text, kind text, amount integer); begin;"
    awk 'BEGIN { for (i = 1; i <= 200000; i++)
      printf "insert into t values (%d, \"name %d of many\", \"kind %d\", %d);\n", i, (i * 7919) % 200003, i % 97, (i * 31) % 1009 }' |
      tr '"' "'"
    echo "commit; create index t_name on t (name); create index t_kind on t (kind, amount);"
    echo "select count(*) from (select name, amount from t order by amount, name desc);"
    echo "select count(*), max(s) from (select kind, sum(amount) as s, group_concat(name) as g from t group by kind);"
    echo "delete from t where id % 3 = 0; select count(*) from t;"
  } >"$dir/load.sql"
  compare sqlite3 "inserts, indexes, order by, group by in memory" sqlite3 :memory: ".read $dir/load.sql"
else
  absent+=(sqlite3)
fi

if command -v redis-server >/dev/null && command -v redis-cli >/dev/null && command -v redis-benchmark >/dev/null; then
  compare redis "redis-server under redis-benchmark" scripts/redis-load.sh
else
  absent+=("redis-server (with redis-cli and redis-benchmark)")
fi

for name in "${absent[@]}"; do
  printf '\nnot found on this machine, so not compared: %s\n' "$name"
done

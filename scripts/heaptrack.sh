#!/usr/bin/env bash
# Compares `craton profile` with heaptrack on three programs, in C++, Rust and Python: what each
# costs, and whether both name the same three functions with most memory at the high-water mark.
#   scripts/heaptrack.sh [--runs N]     N rounds of each (default 5), in turns
# Needs heaptrack, g++, rustc, c++filt, python3, and what `make build` builds.
set -euo pipefail
cd "$(dirname "$0")/.."
runs=5
while [ $# -gt 0 ]; do
  case "$1" in
    --runs) runs=${2:?--runs wants a number} && shift 2 ;;
    *) echo "usage: $0 [--runs N]" >&2 && exit 2 ;;
  esac
done
craton=${CRATON:-$PWD/${CARGO_TARGET_DIR:-target}/release/craton}
export CRATON_LIBRARY=${CRATON_LIBRARY:-$PWD/${CARGO_TARGET_DIR:-target}/release/libcraton.so}
[ -x "$craton" ] || { echo "$0: $craton is not built; run \`make build\` first" >&2; exit 1; }
for program in heaptrack_print g++ rustc c++filt /usr/bin/python3; do
  command -v "$program" >/dev/null || { echo "$0: $program is not here" >&2; exit 1; }
done
preload=$(echo /usr/lib/heaptrack/libheaptrack_preload.so /usr/lib/*/heaptrack/libheaptrack_preload.so | tr ' ' '\n' |
  while read -r path; do [ -e "$path" ] && echo "$path" && break; done)
interpret=$(dirname "$preload")/libexec/heaptrack_interpret
sources=$PWD/scripts/heaptrack
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
g++ -g -O2 -o words "$sources/words.cpp"
rustc -g -O -o orders "$sources/orders.rs"
export PYTHONMALLOC=malloc
run() { # NAME
  case "$1" in
    python) /usr/bin/python3 "$sources/records.py" ;;
    *) "./$1" ;;
  esac
}

# Appends the processor seconds of one run, by a way of running it, to NAME.WAY.
timed() { # WAY NAME
  # heaptrack would leave the rest of a longer file behind its own.
  [ "$1" != heaptrack ] || rm -f raw
  TIMEFORMAT='%3U %3S'
  {
    time case "$1" in
      glibc) run "$2" ;;
      heaptrack) LD_PRELOAD=$preload DUMP_HEAPTRACK_OUTPUT=$dir/raw run "$2" ;;
      off) LD_PRELOAD=$CRATON_LIBRARY CRATON_OPTIONS=profile=off run "$2" ;;
      default) LD_PRELOAD=$CRATON_LIBRARY CRATON_OPTIONS=profile_file=$dir/profile run "$2" ;;
      64K) LD_PRELOAD=$CRATON_LIBRARY CRATON_OPTIONS=profile=64K,profile_file=$dir/profile run "$2" ;;
    esac >said 2>errors
  } 2>seconds
  awk '{ print $1 + $2 }' seconds >>"$2.$1"
  [ -e "$2.said" ] || cp said "$2.said"
  cmp -s said "$2.said" || { echo "$0: $1 changed what $2 prints" >&2; exit 1; }
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

# The innermost function of a stack that has a name and is not of the language's library.
sites() { # < stacks, root first, and bytes
  c++filt | sed -E 's/\[[0-9a-f]+\]//g' | awk '
    {
      bytes = $NF; $NF = ""
      site = "?"
      for (i = split($0, frames, ";"); i > 0; i--) {
        name = frames[i]; sub(/\(.*/, "", name); sub(/::h[0-9a-f]+ *$/, "", name); sub(/ *$/, "", name)
        if (name == "" || name ~ /^0x|\+0x|operator new|^(malloc|calloc|realloc)$|__rust|__rdl/) continue
        if (name ~ /(^|[ <&])(std|__gnu_cxx|alloc|core|hashbrown)::/) continue
        site = name; break
      }
      sum[site] += bytes; all += bytes
    }
    END { for (site in sum) printf "%d %.0f%% %s\n", sum[site], 100 * sum[site] / all, site }' | sort -rn | head -n 3
}

programs=(words orders python)
for program in "${programs[@]}"; do
  for ((round = 0; round <= runs; round++)); do
    for way in glibc heaptrack off default 64K; do timed "$way" "$program"; done
    # The first round warms up.
    [ $round != 0 ] || rm -f "$program".{glibc,heaptrack,off,default,64K}
  done
  "$interpret" <raw 2>/dev/null | gzip -1 >raw.gz
  heaptrack_print -f raw.gz -p 0 -a 0 -T 0 -F stacks --flamegraph-cost-type peak >/dev/null
  sites <stacks >"$program.sites.heaptrack"
  "$craton" profile profile --peak --folded stacks
  sites <stacks >"$program.sites.craton"
done

printf '\nprocessor seconds, medians of %s rounds\n' "$runs"
printf '%-8s %7s %10s %8s %8s %8s %8s %8s %8s\n' program glibc heaptrack slower off default slower 64K slower
for program in "${programs[@]}"; do
  for way in glibc heaptrack off default 64K; do median "$program.$way"; done | paste -sd' ' | sed "s/^/$program /"
done | awk '{
  percent = "%7.1f%%"
  printf "%-8s %7.3f %10.3f " percent " %8.3f %8.3f " percent " %8.3f " percent "\n",
    $1, $2, $3, 100 * ($3 / $2 - 1), $4, $5, 100 * ($5 / $4 - 1), $6, 100 * ($6 / $4 - 1)
}'
echo 'off: profile=off; 64K: profile=64K; slower: heaptrack than glibc, the profile than off'
for program in "${programs[@]}"; do
  printf '\n%s: bytes and share at the peak; heaptrack, then craton with profile=64K\n' "$program"
  paste -d'|' "$program.sites.heaptrack" "$program.sites.craton" | awk -F'|' '{ printf "  %-48s %s\n", $1, $2 }'
  if [ "$(cut -d' ' -f3- "$program.sites.heaptrack" | sort)" = "$(cut -d' ' -f3- "$program.sites.craton" | sort)" ]; then
    echo "  the same three functions"
  else
    echo "  not the same three functions"
  fi
done

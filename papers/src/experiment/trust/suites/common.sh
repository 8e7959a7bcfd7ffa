# Functions of the suites' scripts. The prefix `$on` runs a command on the allocator. The last
# command of a pipe prints `tests T passed P`.
set -uo pipefail
suites=${CRATON_SUITES:-/nonexistent}

# The interpreter itself: a python3 of a version manager is a script.
interpreter=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) || interpreter=python3
has_module() { "$interpreter" -c "import $1" 2>/dev/null; }
clone() { [ -e "$suites/$1" ]; }

# Counts from the words of test runners.
of_unittest() {
  awk '/^Ran [0-9]+ test/ { t += $2 }
    /^FAILED \(/ { n = split($0, part, /[(),= ]+/); for (i = 1; i < n; i++) if (part[i] ~ /^(failures|errors)$/) f += part[i + 1] }
    END { print "tests", t + 0, "passed", t - f }'
}
of_pytest() {
  tail -1 | grep -oE '[0-9]+ (passed|failed|errors?)' |
    awk '{ t += $1; if ($2 == "passed") p = $1 } END { print "tests", t + 0, "passed", p + 0 }'
}
of_cargo() { awk '/^test result:/ { p += $4; t += $4 + $6 } END { print "tests", t + 0, "passed", p + 0 }'; }
of_redis() { awk '/\[ok\]/ { p++ } /\[(err|exception|ok)\]/ { t++ } END { print "tests", t + 0, "passed", p + 0 }'; }
of_prove() { awk '/^ok / { p++ } /^(not )?ok / { t++ } END { print "tests", t + 0, "passed", p + 0 }'; }

# CPython's modules that allocate most, and those with threads and children; its objects use malloc,
# too.
cpython() {
  PYTHONMALLOC=malloc $on "$interpreter" -m test -v test_array test_bytes test_bz2 test_capi test_codecs test_collections test_ctypes test_deque \
    test_dict test_fork1 test_functools test_gc test_heapq test_io test_itertools test_json test_list test_long test_lzma \
    test_memoryio test_memoryview test_mmap test_pickle test_re test_set test_sort test_sqlite3 test_struct test_subprocess \
    test_thread test_threading test_tracemalloc test_tuple test_unicode test_weakref test_zlib 2>&1
}

stressors() {
  local of
  for of in malloc bsearch heapsort hsearch judy list lsearch mergesort mremap pthread qsort radixsort skiplist \
    str tree tsearch vecmath wcs zlib; do
    if $on stress-ng "--$of" 1 --timeout 1 --verify >&2; then echo "ok $of"; else echo "not ok $of"; fi
  done
}

# The newest source of a crate in cargo's cache; its tests may need crates that cargo then fetches.
crate() {
  local source
  source=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$1"-[0-9]* 2>/dev/null | tail -1)
  [ -n "$source" ] || return 1
  cp -r "$source" crate && cd crate && rm -f Cargo.lock && cargo test --tests --no-run
}
crate_tests() {
  cd crate
  CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=$on CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=$on \
    cargo test --tests --no-fail-fast 2>&1
}

mimalloc_stress() {
  cc -O1 -w -DUSE_STD_MALLOC -I"$suites/mimalloc/include" "$suites/mimalloc/test/test-stress.c" -o stress -lpthread || return 1
  local passed=0
  for threads in 1 2 4 8; do
    $on ./stress "$threads" 25 5 >&2 && passed=$((passed + 1))
  done
  echo "tests 4 passed $passed"
}

# The server alone is on the allocator.
redis() {
  rm -rf redis
  cp -r "$suites/redis" redis && cd redis || return 1
  mv src/redis-server src/redis-server.real
  printf '#!/bin/sh\nexec %s %s "$@"\n' "$on" "$PWD/src/redis-server.real" > src/redis-server
  chmod +x src/redis-server
  TERM=dumb ./runtest --clients 2 --single unit/type/list --single unit/type/hash --single unit/type/zset --single unit/type/set \
    --single unit/expire --single unit/dump --single unit/scan --single unit/sort --single unit/bitops 2>&1
}

perl_core() {
  cd "$suites/perl/t" || return 1
  for test in op/*.t re/*.t uni/*.t; do
    timeout 120 $on ./perl -I../lib "$test" 2>/dev/null
  done
}

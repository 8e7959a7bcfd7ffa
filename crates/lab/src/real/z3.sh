#!/usr/bin/env bash
# z3: pigeons and holes (unsatisfiable), and a product of bit vectors to be factored (satisfiable).
#
# The program itself would do, but it leaves with status 0 whatever it finds: the script compares what it prints. z3 calls
# the C library's malloc, or what is preloaded; it counts its memory by a header in front of each object.
source "$(dirname "$0")/common.sh"
case "$verb" in
  prepare)
    awk -v n="$(sized 9 10)" -v bits="$(sized 16 24)" -v product="$(sized 2027651281 8589279241)" 'BEGIN {
      print "(push)"
      for (i = 1; i <= n; i++) for (j = 1; j < n; j++) printf "(declare-const p%d_%d Bool)\n", i, j
      for (i = 1; i <= n; i++) {
        printf "(assert (or"
        for (j = 1; j < n; j++) printf " p%d_%d", i, j
        print "))"
      }
      for (j = 1; j < n; j++) for (i = 1; i <= n; i++) for (k = i + 1; k <= n; k++)
        printf "(assert (or (not p%d_%d) (not p%d_%d)))\n", i, j, k, j
      print "(check-sat)\n(pop)"
    }' >"$name.smt2"
    measure_script
    ;;
  run) [ "$(z3 "$name.smt2")" = unsat ] || fail "z3 found another answer" ;;
  *) fail "$verb: give prepare or run" ;;
esac

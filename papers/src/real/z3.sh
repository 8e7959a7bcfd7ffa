#!/usr/bin/env bash
# z3: pigeons and holes, factors of two numbers as products of bit vectors, and a chain of terms
# over an unknown function.
#
# z3 exits with status 0 whatever it finds, so the script compares its output. z3 calls the C
# library's malloc, or the preloaded one, for chunks that it divides into small objects, and for
# larger ones: 160,000 requests in a full run, so it computes more than it allocates.
source "${BASH_SOURCE[0]%/*}/common.sh"
case "$verb" in
  prepare)
    # One pigeon more than holes; a prime and a product of two primes; as many terms.
    awk -v n="$(sized 8 9)" -v bits="$(sized 24 32)" -v prime="$(sized 16777213 2147483647)" \
      -v product="$(sized 16752649 4292870399)" -v terms="$(sized 60 120)" '
    function factor(number,  least) {
      least = 2 ^ (bits / 2)
      printf "(push) (declare-const a (_ BitVec %d)) (declare-const b (_ BitVec %d))\n", bits, bits
      printf "(assert (= (bvmul a b) (_ bv%s %d)))\n", number, bits
      printf "(assert (bvugt a (_ bv1 %d))) (assert (bvugt b (_ bv1 %d)))\n", bits, bits
      printf "(assert (bvult a (_ bv%d %d))) (assert (bvult b (_ bv%d %d)))\n", least, bits, least, bits
      print "(check-sat) (pop)"
    }
    BEGIN {
      print "(push)"
      for (i = 1; i <= n; i++) for (j = 1; j < n; j++) printf "(declare-const p%d_%d Bool)\n", i, j
      for (i = 1; i <= n; i++) {
        printf "(assert (or"
        for (j = 1; j < n; j++) printf " p%d_%d", i, j
        print "))"
      }
      for (j = 1; j < n; j++) for (i = 1; i <= n; i++) for (k = i + 1; k <= n; k++)
        printf "(assert (or (not p%d_%d) (not p%d_%d)))\n", i, j, k, j
      print "(check-sat) (pop)"
      factor(prime)
      factor(product)
      print "(push) (declare-fun f (Int) Int) (declare-const x0 Int) (assert (> x0 0))"
      for (i = 1; i <= terms; i++) {
        printf "(declare-const x%d Int)\n", i
        printf "(assert (= x%d (+ (f x%d) (ite (> x%d %d) x%d (* 2 x%d)))))\n",
          i, i - 1, i - 1, i, int(i / 2), int(i / 3)
        printf "(assert (< (f x%d) (+ %d (f %d))))\n", i, i, i % 7
      }
      print "(check-sat) (pop)"
    }' >"$name.smt2"
    printf '%s\n' unsat unsat sat sat >"$name.expected"
    measure_script
    ;;
  run)
    z3 "$name.smt2" >"$name.answers"
    same "$name.answers" "$name.expected"
    ;;
  *) fail "$verb: give prepare or run" ;;
esac

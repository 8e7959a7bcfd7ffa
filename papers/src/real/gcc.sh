#!/usr/bin/env bash
# gcc -O1 -c: a generated C file of many functions.
#
# cc1 is the largest process, and the one that matters; as takes a hundredth of its time. Both call
# the C library's malloc, or the preloaded one: in a full run cc1 two million times. cc1 gets the
# pages for its trees from mmap and collects garbage in them: malloc serves its hash tables,
# bitmaps, vectors and the passes' obstacks. The object file must equal that of the same compiler
# without a preloaded allocator.
source "${BASH_SOURCE[0]%/*}/common.sh"
compile() { "$@" gcc -O1 -c "$name.c" -o "$name.o"; }
case "$verb" in
  prepare)
    awk -v n="$(sized 40 450)" 'BEGIN {
      print "struct node { struct node *next; unsigned value, weight[8]; };"
      for (i = 0; i < n; i++) {
        printf "static unsigned f%d(struct node *n, unsigned x) {\n", i
        printf "  unsigned sum = x * %du;\n", i * 2654435 % 65521 + 1
        printf "  for (; n; n = n->next) {\n    switch ((n->value ^ x) %% %d) {\n", i % 5 + 3
        for (j = 0; j < i % 5 + 3; j++)
          printf "      case %d: sum += n->weight[%d] * %du + (sum >> %d); break;\n",
            j, (i + j) % 8, i * j + 7, j % 13 + 1
        printf "      default: sum ^= n->value;\n    }\n    if (sum & %d) n->weight[sum %% 8] += x;\n  }\n", i % 31 + 1
        print "  return sum;\n}"
      }
      print "unsigned (*const table[])(struct node *, unsigned) = {"
      for (i = 0; i < n; i++) printf "  f%d,\n", i
      print "};"
    }' >"$name.c"
    compile plain
    mv "$name.o" "$name.expected"
    measure_script
    ;;
  run)
    compile command
    same "$name.o" "$name.expected"
    ;;
  *) fail "$verb: give prepare or run" ;;
esac

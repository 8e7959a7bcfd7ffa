#!/usr/bin/env bash
# g++ -O1 -c: a C++ file with templates of the standard library over many types.
#
# cc1plus gets the pages for its trees from mmap, as cc1 (gcc.sh); malloc serves memory without
# garbage collection.
source "${BASH_SOURCE[0]%/*}/common.sh"
compile() { "$@" g++ -std=c++17 -O1 -c "$name.cc" -o "$name.o"; }
case "$verb" in
  prepare)
    awk -v n="$(sized 1 14)" 'BEGIN {
      print "#include <map>\n#include <memory>\n#include <string>\n#include <vector>"
      print "template <int N> struct key { int value[N]; };"
      print "template <int N> bool operator<(const key<N> &a, const key<N> &b) {"
      print "  return a.value[N - 1] < b.value[N - 1];\n}"
      for (i = 1; i <= n; i++) {
        printf "std::size_t f%d(int x) {\n  std::map<key<%d>, std::vector<std::shared_ptr<key<%d>>>> m;\n", i, i, i
        printf "  for (int i = 0; i < x; i++) m[key<%d>{{i}}].push_back(std::make_shared<key<%d>>());\n", i, i
        print "  return m.size();\n}"
      }
    }' >"$name.cc"
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

#!/usr/bin/env bash
# sqlite3 in memory: inserts, two indexes, order by, group by, delete.
#
# The program is measured, without a shell. It calls the C library's malloc, or the preloaded one:
# pages of the data base, a sorter, strings. The results are compared with awk's counts from the
# making of the statements: a difference breaks a constraint of the table `verify`, and -bail makes
# that the exit status.
source "${BASH_SOURCE[0]%/*}/common.sh"
[ "$verb" = prepare ] || fail "$verb: give prepare"
awk -v n="$(sized 30000 180000)" 'BEGIN {
  print "create table verify (what text, ok integer not null check (ok));"
  print "create table t (id integer primary key, name text, kind text, amount integer); begin;"
  for (i = 1; i <= n; i++) {
    name = "name " (i * 7919) % 200003 " of many"; kind = i % 97; amount = (i * 31) % 1009
    printf "insert into t values (%d, \"%s\", \"kind %d\", %d);\n", i, name, kind, amount
    sum += amount; letters += length(name); kinds[kind] = 1
    if (i % 3 != 0) { left++; left_sum += amount }
  }
  for (kind in kinds) groups++
  print "commit; create index t_name on t (name); create index t_kind on t (kind, amount);"
  print "insert into verify select \"order\", count(*) = " n " and sum(up) = " n - 1
  print "  from (select amount >= lag(amount) over (order by amount, name desc) as up from t);"
  print "insert into verify select \"group\", count(*) = " groups " and sum(s) = " sum
  print "  and sum(length(g)) = " letters + n - groups
  print "  from (select kind, sum(amount) as s, group_concat(name) as g from t group by kind);"
  print "insert into verify select \"join\", count(*) = " n " from t a join t b on a.id = b.id and a.name = b.name;"
  print "delete from t where id % 3 = 0;"
  print "insert into verify select \"delete\", count(*) = " left " and sum(amount) = " left_sum " from t;"
  print "insert into verify select \"whole\", count(*) = 1 and max(integrity_check) = \"ok\""
  print "  from pragma_integrity_check;"
}' | tr '"' "'" >"$name.sql"
measure sqlite3 -init /dev/null -batch -bail :memory: ".read '$dir/$name.sql'"

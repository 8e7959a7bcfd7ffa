cat > load.sql <<'X'
create table t(a integer primary key, b text, c blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 15000)
  insert into t select i, printf('%0*d', i % 400, i * 7919 % 10007), zeroblob(i % 900) from n;
create index tb on t(b);
select count(*), sum(length(b)), sum(length(c)) from t;
select substr(b, 1, 9), count(*) from t group by 1 order by 2 desc, 1 limit 5;
delete from t where a % 3 = 0;
select length(group_concat(b)) from t;
vacuum;
X
command -v sqlite3
printf '%s\n' -batch -init load.sql :memory: ''

-- Fires every marker that one process alone can fire: checkpoints, sorts, reads and writes of few buffers, write-ahead log
-- whose buffers are full, a lock that is waited for in vain.
create table t (n int primary key, x text);
insert into t select i, repeat('x', 100) || i from generate_series(1, 3000) i;
select count(*), sum(n) from t;
select n from t order by x desc limit 1;
begin; update t set x = x || 'y' where n % 7 = 0; savepoint s; delete from t where n < 10; rollback to s; commit;
begin; insert into t values (9999, 'gone'); rollback;
prepare q (int) as select count(*) from t where n < $1;
execute q (100);
checkpoint;
select pg_switch_wal() is not null;
create index i on t (x);
vacuum t;
begin; lock table t in access exclusive mode; prepare transaction 'held';
set lock_timeout = '50ms';
select count(*) from t;
commit prepared 'held';
select count(*) from t;
select count(*) from (select t1.n from t t1, t t2 where t1.n = t2.n order by t1.x, t2.x) as j;
checkpoint;
create table c (i int);
insert into c select generate_series(1, 20000);
create index c_i on c (i);
set enable_indexscan = off;
cluster c using c_i;
select count(distinct i) from c;

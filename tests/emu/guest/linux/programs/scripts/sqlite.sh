# Three processes write a database with a write-ahead log; locks that exclude.
sqlite3 d 'pragma journal_mode=wal; create table t(n integer primary key, x);'
for p in 1 2 3; do (for i in $(seq 10); do sqlite3 -cmd '.timeout 20000' d "insert into t(x) values($p);"; done) & done; wait
sqlite3 d 'select count(*), sum(x) from t; pragma integrity_check; pragma wal_checkpoint(truncate); vacuum;'; ls
sqlite3 d .dump | wc -l
python3.13 -I -S -c "
import sqlite3
c=sqlite3.connect('d'); c.execute('begin immediate'); d=sqlite3.connect('d',timeout=0.1)
try: d.execute('begin immediate')
except Exception as e: print(e)
print(d.execute('select count(*) from t').fetchone()); c.rollback()"

"""PostgreSQL makes a database, answers queries, and its markers fire.

Users, owners of files, locks and shared memory have to work together for that.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from emu.elf.image import Image
from emu.elf.stapsdt import markers
from emu.isa import ISAS
from providers.fasttrap import probe_name
from tests.emu.guest.linux.programs.workloads import DEBIAN

pytestmark = pytest.mark.debian

BIN = "/usr/lib/postgresql/17/bin"
QUERIES = (Path(__file__).parent / "postgresql.sql").read_text()
# It refuses to run as root, and asks for the name of its user.  Few buffers, so that they are written while it runs.
SCRIPT = """
BIN=/usr/lib/postgresql/17/bin
echo 'postgres:x:1000:1000::/:/bin/sh' >> /etc/passwd
mkdir /pg; chown 1000:1000 /pg
as="/usr/bin/setpriv --reuid=1000 --regid=1000 --clear-groups"
$as $BIN/initdb -D /pg/data -A trust --no-sync --no-locale -E UTF8 || exit 1
printf %s "$1" > /pg.sql
few="-c shared_buffers=128kB -c wal_buffers=32kB -c max_prepared_transactions=2 -c max_connections=4"
exec $as $BIN/postgres --single $few -D /pg/data postgres < /pg.sql
"""
# Markers that a process alone does not reach: they tell of another one that has, or had, what this one wants.
OF_SEVERAL_PROCESSES = {
    "deadlock-found": "two processes wait for one another",
    "lock-wait-done": "another process gives the lock back; the wait in vain ends by a jump",
    "lwlock-acquire-or-wait-fail": "another process has written the log meanwhile",
    "lwlock-condacquire-fail": "another process has the lock",
    "lwlock-wait-start": "another process has the lock",
    "lwlock-wait-done": "another process has given the lock back",
}
# A server with clients at its socket: a deadlock, updates of one row by four clients, a parallel query, pgbench.  The
# server is the command itself; the clients run beside it.
SERVER = """
BIN=/usr/lib/postgresql/17/bin
echo 'postgres:x:1000:1000::/:/bin/sh' >> /etc/passwd
mkdir /pg; chown 1000:1000 /pg
as="/usr/bin/setpriv --reuid=1000 --regid=1000 --clear-groups"
$as $BIN/initdb -D /pg/data -A trust --no-sync --no-locale -E UTF8 > /dev/null || exit 1
psql="$as $BIN/psql -h /pg -d postgres -X -q -At"
(
until $as $BIN/pg_isready -h /pg -q; do sleep 0.2; done
$psql -c "create table a (n int, v int); insert into a values (1, 0), (2, 0); create table b as select * from a"
$psql -c "begin; update a set v = v + 1 where n = 1" -c "select pg_sleep(0.3)" -c "update b set v = v + 1 where n = 1" \
  -c commit > /pg/1 2>&1 &
one=$!
$psql -c "begin; update b set v = v + 1 where n = 1" -c "select pg_sleep(0.3)" -c "update a set v = v + 1 where n = 1" \
  -c commit > /pg/2 2>&1 &
wait $one $!
echo deadlocks $(cat /pg/1 /pg/2 | grep -c 'deadlock detected')
for c in 1 2 3 4; do
  for t in 1 2 3 4 5 6 7 8; do echo "update a set v = v + 1 where n = 2;"; done > /pg/$c.sql
done
jobs=; for c in 1 2 3 4; do $psql -f /pg/$c.sql & jobs="$jobs $!"; done; wait $jobs
$psql -c "select 'updates ' || v from a where n = 2"
$psql << X
set min_parallel_table_scan_size = 0; set parallel_setup_cost = 0; set parallel_tuple_cost = 0;
create table big as select i from generate_series(1, 5000) i;
explain (costs off) select sum(i) from big;
select 'sum ' || sum(i) from big;
listen ch; notify ch, 'hello';
X
$as $BIN/pgbench -h /pg -i -s 1 --quiet -I dtp postgres > /dev/null 2>&1
echo "insert into pgbench_history (tid, bid, aid, delta) values (1, 1, 1, :client_id);" > /pg/p.sql
$as $BIN/pgbench -h /pg -n -f /pg/p.sql -c 4 -j 2 -t 10 postgres 2>&1 | grep processed
kill -INT $(head -1 /pg/data/postmaster.pid)
) &
few="-c shared_buffers=1MB -c max_connections=8 -c fsync=off -c deadlock_timeout=200ms"
exec $as $BIN/postgres $few -c unix_socket_directories=/pg -c listen_addresses= -D /pg/data 2> /pg/log
"""
# A server and six clients, who write; then four of them read one table, and each has no page that is not another's.
CONTENTION = SERVER[: SERVER.index('$psql -c "create')] + SERVER[SERVER.index("$as $BIN/pgbench") :].replace(
    "-c 4 -j 2 -t 10", "-c 6 -j 2 -t 8"
).replace("max_connections=8", "max_connections=12").replace("shared_buffers=1MB", "shared_buffers=256kB").replace(
    "kill -INT",
    """$psql -c "create table big as select i, repeat('x', 200) from generate_series(1, 3000) i" -c checkpoint
jobs=; for c in 1 2 3 4; do $psql -c "select 'read ' || count(*) from big" & jobs="$jobs $!"; done; wait $jobs
kill -INT""",
)
# A server and four clients, who end transaction after transaction: each takes the lock of the list of processes only
# if it is free.  One that is interrupted there still has it when another ends its own.
CONDITIONS = (
    SERVER[: SERVER.index('$psql -c "create')]
    + r"""
loop="do \$\$ begin for i in 1..250 loop perform pg_current_xact_id(); commit; end loop; end \$\$"
jobs=; for c in 0 1 2 3; do $psql -c "set synchronous_commit = off" -c "$loop" & jobs="$jobs $!"; done; wait $jobs
$psql -c "select 'done'"
"""
    + SERVER[SERVER.index("kill -INT") :]
)
# A server is told to end at once, and the next one does from the log what is lost.  Overflow pages of the hash index
# become free and are used again while they are in memory.
RECOVERY = (
    SERVER[: SERVER.index("(\nuntil")]  # noqa: S608  a script whose queries are constants
    + """
few="-c shared_buffers=1MB -c max_connections=8 -c unix_socket_directories=/pg -c listen_addresses="
start() {
  $as $BIN/postgres $few -D /pg/data >> /pg/log 2>&1 &
  until $as $BIN/pg_isready -h /pg -q; do sleep 0.2; done
}
psql="$as $BIN/psql -h /pg -d postgres -X -q -At"
start
$psql << X
create table a (n int, v text);
create index on a using hash (n);
insert into a select i % 5, repeat('x', i % 100) from generate_series(1, 2000) i;
create index on a using gin (to_tsvector('simple', v));
delete from a where v > 'xxx';
vacuum a;
insert into a select i % 5, 'y' from generate_series(1, 1500) i;
X
kill -QUIT $(head -1 /pg/data/postmaster.pid); wait
start
$psql -c "select 'rows ' || count(*) from a"
kill -INT $(head -1 /pg/data/postmaster.pid); wait
echo recoveries $(grep -c 'redo done' /pg/log)
"""
)
PROBES = 57
PLACES = 80
# Places that one process reaches: all but those of other processes' markers and some copies of buffer-read-*.
REACHED = 62


def server(isa):
    """Return the path of an ISA's PostgreSQL server."""
    return DEBIAN / isa / BIN.lstrip("/") / "postgres"


@pytest.fixture(params=ISAS)
def isa(request):
    """Each ISA whose PostgreSQL is there."""
    if not server(request.param).exists():
        pytest.skip("PostgreSQL is not there: `make debian` gets it")
    return request.param


def traced(isa, program, script, *arguments, options=()):
    """Run a script under a program of D; return what it printed, and the counts by probe."""
    ran = subprocess.run(
        [
            sys.executable, "-m", "trapline", "dtrace", *options, "-Zqn", program,
            "--root", DEBIAN / isa, "-c", shlex.join(["/usr/bin/bash", "-c", script, "bash", *arguments]),
        ],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    return ran, {name: int(count) for name, count in re.findall(r"^  ([a-z-]+) +(\d+)$", ran.stdout, re.MULTILINE)}


def test_a_server_and_its_clients_work_together(isa):
    ran, fired = traced(isa, "postgresql*::: { @[probename] = count(); }", SERVER)
    for line in ("deadlocks 1", "updates 32", "sum 12502500", "transactions actually processed: 40/40"):
        assert line in ran.stdout, ran.stdout[-2000:] + ran.stderr
    assert "Parallel Seq Scan on big" in ran.stdout
    assert 'Asynchronous notification "ch" with payload "hello"' in ran.stdout
    assert "has no" not in ran.stderr, "system calls that are not there"
    assert fired["deadlock-found"] == 1
    assert fired["lock-wait-done"] >= 1
    assert fired["transaction-commit"] > 80


def test_processes_that_are_interrupted_anywhere_wait_for_light_weight_locks(isa):
    """A turn usually ends in a system call, where PostgreSQL holds few of them."""
    program = "postgresql*:::lwlock* { @[probename] = count(); } "
    program += "postgresql*:::buffer-read-done { @places[ustack(1)] = count(); }"
    ran, fired = traced(isa, program, CONTENTION, options=("-x", "quantum=2000"))
    assert "transactions actually processed: 48/48" in ran.stdout, ran.stdout[-2000:] + ran.stderr
    assert fired["lwlock-wait-start"] > 0
    assert fired["lwlock-wait-done"] > 0
    assert ran.stdout.count("read 3000") == 4
    assert len(set(re.findall(r"postgres`WaitReadBuffers\S*", ran.stdout))) == 2


def test_a_server_that_was_killed_is_recovered_from_its_log(isa):
    program = "postgresql*:::buffer-read* { @[probename] = count(); @places[probename, ustack(1)] = count(); }"
    ran, fired = traced(isa, program, RECOVERY)
    assert "recoveries 1" in ran.stdout, ran.stdout[-2000:] + ran.stderr
    assert "rows 1580" in ran.stdout
    assert "has no" not in ran.stderr, "system calls that are not there"
    assert fired["buffer-read-start"] >= fired["buffer-read-done"] > 50_000
    assert len(set(re.findall(r"postgres`ReadBufferWithoutRelcache\S*", ran.stdout))) == 2


def test_of_processes_that_are_interrupted_anywhere_some_do_not_get_a_lock(isa):
    program = "postgresql*:::lwlock-cond*, postgresql*:::lwlock-wait* { @[probename] = count(); }"
    ran, fired = traced(isa, program, CONDITIONS, options=("-x", "quantum=500"))
    assert "done" in ran.stdout, ran.stdout[-2000:] + ran.stderr
    assert fired["lwlock-condacquire-fail"] > 0


def test_postgresql_makes_a_database_and_fires_every_marker_of_one_process(isa):
    found = [marker for marker in markers(Image(str(server(isa)))) if marker.provider == "postgresql"]
    assert len(found) == PLACES
    names = {probe_name(marker.name) for marker in found}
    assert len(names) == PROBES
    program = "postgresql$target::: { @[probename] = count(); @places[probename, ustack(1)] = count(); }"
    ran, fired = traced(isa, program, SCRIPT, QUERIES)
    assert len(re.findall(r"^  [a-z-]+ *\n +\S+\n +\d+$", ran.stdout, re.MULTILINE)) == REACHED
    assert 'sum = "4501500"' in ran.stdout, ran.stdout[-2000:] + ran.stderr
    assert "canceling statement due to lock timeout" in ran.stdout + ran.stderr
    assert "has no" not in ran.stderr, "system calls that are not there"
    assert names - set(fired) == set(OF_SEVERAL_PROCESSES)
    assert fired["checkpoint-start"] == fired["checkpoint-done"] == 3
    assert fired["sort-start"] == fired["sort-done"]

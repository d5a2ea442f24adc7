"""PostgreSQL makes a database, answers queries, and its markers fire.

Users, owners of files, locks and shared memory have to work together for that.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from emu.elf import Image
from emu.isa import ISAS
from emu.stapsdt import markers
from providers.fasttrap import probe_name
from tests.emu.guest.linux.programs.running import DEBIAN

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
PROBES = 57
PLACES = 80


@pytest.mark.parametrize("isa", ISAS)
def test_postgresql_makes_a_database_and_fires_every_marker_of_one_process(isa):
    program = DEBIAN / isa / BIN.lstrip("/") / "postgres"
    if not program.exists():
        pytest.skip("PostgreSQL is not there: `make debian` gets it")
    found = [marker for marker in markers(Image(str(program))) if marker.provider == "postgresql"]
    assert len(found) == PLACES
    names = {probe_name(marker.name) for marker in found}
    assert len(names) == PROBES
    ran = subprocess.run(
        [
            sys.executable, "-m", "trapline", "dtrace", "-Zqn", "postgresql$target::: { @[probename] = count(); }",
            "--root", DEBIAN / isa, "-c", shlex.join(["/usr/bin/bash", "-c", SCRIPT, "bash", QUERIES]),
        ],
        capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip
    assert 'sum = "4501500"' in ran.stdout, ran.stdout[-2000:] + ran.stderr
    assert "canceling statement due to lock timeout" in ran.stdout + ran.stderr
    assert "has no" not in ran.stderr, "system calls that are not there"
    fired = {name: int(count) for name, count in re.findall(r"^  ([a-z-]+) +(\d+)$", ran.stdout, re.MULTILINE)}
    assert names - set(fired) == set(OF_SEVERAL_PROCESSES)
    assert fired["checkpoint-start"] == fired["checkpoint-done"] == 3
    assert fired["sort-start"] == fired["sort-done"]

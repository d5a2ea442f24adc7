"""PostgreSQL makes a database, answers queries, and its markers fire.

Users, owners of files, locks and shared memory have to work together for that.
"""

import shlex
import subprocess
import sys

import pytest

from emu.isa import ISAS
from tests.linux.programs.running import DEBIAN

BIN = "/usr/lib/postgresql/17/bin"
# It refuses to run as root, and asks for the name of its user.
SCRIPT = """
BIN=/usr/lib/postgresql/17/bin
echo 'postgres:x:1000:1000::/:/bin/sh' >> /etc/passwd
mkdir /pg; chown 1000:1000 /pg
as="/usr/bin/setpriv --reuid=1000 --regid=1000 --clear-groups"
$as $BIN/initdb -D /pg/data -A trust --no-sync --no-locale -E UTF8
echo "create table t (n int); insert into t select generate_series(1, 100); select sum(n) from t;" > /pg.sql
exec $as $BIN/postgres --single -D /pg/data postgres < /pg.sql
"""


@pytest.mark.parametrize("isa", ISAS)
def test_postgresql_makes_a_database_and_its_markers_fire(isa):
    if not (DEBIAN / isa / BIN.lstrip("/") / "postgres").exists():
        pytest.skip("PostgreSQL is not there: `make debian` gets it")
    marker = f"{BIN}/postgres:postgresql:query__start"
    command = shlex.join(["/usr/bin/bash", "-c", SCRIPT])
    ran = subprocess.run(
        [sys.executable, "-m", "trapline", "usdt", "-i", marker, "--root", DEBIAN / isa, "-c", command],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert 'sum = "5050"' in ran.stdout, ran.stdout[-2000:] + ran.stderr
    assert ran.stdout.count(" postgresql_query__start: (") > 100
    assert "has no" not in ran.stderr, "system calls that are not there"

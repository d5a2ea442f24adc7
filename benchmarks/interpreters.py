"""Interpreters of Debian's on the Linux guest, with nothing probed, beside qemu-user.

Each runs a script of its own from the prompt to the end, as a command.  Its own seconds leave out
those in which the same command does nothing: the start of Python, of the guest, or of qemu-user.
`make debian` gets the programs.
"""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.figures import Cell, Figures, Scale
from emu.isa import Isa
from tests.support.qemu import below

DEBIAN: Final = Path(__file__).parents[1] / ".debian"
_TURNS: Final = 3
# By default qemu-user signs AArch64's pointers by the cipher, which takes most of the time; Unicorn's CPU signs none.
_QEMU: Final = {"aarch64": {"QEMU_CPU": "max,pauth-impdef=on"}}


class Interpreter(NamedTuple):
    """A program, the word before its script, a script that does nothing, and one that works."""

    program: str
    option: str
    nothing: str
    script: str


_LUA: Final = """
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local t = {}
for i = 1, 60000 do t[i] = (i * 7919) % 104729 end
table.sort(t)
for i = 1, 40000 do t[i] = string.format("%d:%s", i, tostring(t[i])) end
print(fib(27), t[1000], #table.concat(t))
"""
_PYTHON: Final = """
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
class Counter:
    def __init__(self, value): self.value = value
    def more(self): return self.value + 1
words = {i * 7919 % 104729: str(i) for i in range(200000)}
print(fib(24), len(sorted(words, key=words.get)), sum(Counter(i).more() for i in range(200000)))
"""
_SQL: Final = """
create table t (a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
insert into t select i, 'row ' || (i * 7919 % 104729), i * 0.5 from n;
create index tb on t(b);
select count(*), sum(c), max(b) from t;
select count(*) from t x join t y on x.b = y.b where x.a % 3 = 0;
select substr(b, 1, 6) k, count(*), avg(c) from t group by k order by 2 desc, k limit 5;
"""
_SHELL: Final = """
for ((s = 0, i = 0; i < 60000; i++)); do ((s += i % 7)); x=a$i; case $x in *9) s=$((s + 1)) ;; esac; done; echo $s
"""
INTERPRETERS: Final = (
    Interpreter("lua5.4", "-e", "print(1)", _LUA),
    Interpreter("python3.13", "-Sc", "print(1)", _PYTHON),
    Interpreter("sqlite3", ":memory:", "select 1;", _SQL),
    Interpreter("bash", "-c", "echo 1", _SHELL),
)


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Measure on some ISAs."""
    rows, left_out = [], []
    for isa in isas:
        root = DEBIAN / isa.name
        qemu = shutil.which(f"qemu-{isa.name}")
        for one in scale.one(INTERPRETERS):
            if qemu is None:
                left_out.append(f"{one.program} of {isa.title}: qemu-{isa.name} is not installed")
            elif not (root / "usr/bin" / one.program).exists():
                left_out.append(f"{one.program} of {isa.title}: it is not there; `make debian` gets it")
            else:
                rows.append(_row(isa, root, qemu, one, scale))
    return Figures(
        "Interpreters on the Linux guest, beside qemu-user",
        ("ISA", "what", "seconds", "qemu-user's", "times", "times, with the start"),
        rows,
        f"CPU seconds, least of {_TURNS} turns, without those of a script that does nothing, but for the last column.",
        left_out=left_out,
    )


def _row(isa: Isa, root: Path, qemu: str, one: Interpreter, scale: Scale) -> list[Cell]:
    path = f"/usr/bin/{one.program}"
    outside = {**os.environ, **_QEMU.get(isa.name, {})}
    least: dict[tuple[str, bool], float] = {}
    said = {}
    for _ in range(scale.turns(_TURNS)):
        for works, script in ((False, one.nothing), (True, one.script)):
            guest = [path, one.option, script]
            commands = {
                "guest": [
                    *(sys.executable, "-m", "trapline", "dtrace", "--guest", "linux", "--isa", isa.name),
                    *("--root", str(root), "-qn", "BEGIN", "-c", shlex.join(guest)),
                ],
                "qemu": [qemu, *below(root), f"{root}{path}", *guest[1:]],
            }
            for name, words in commands.items():
                taken, said[name, works] = cpu_seconds(words, outside)
                least[name, works] = min(taken, least.get((name, works), taken))
        if said["guest", True].split() != said["qemu", True].split():
            raise SystemExit(f"{isa.name}: {one.program} printed {said['guest', True]!r}, not {said['qemu', True]!r}")
    own = {name: least[name, True] - least[name, False] for name in ("guest", "qemu")}
    whole = least["guest", True] / least["qemu", True]
    return [isa.title, one.program, own["guest"], own["qemu"], own["guest"] / own["qemu"], whole]


def cpu_seconds(words: Sequence[str], environment: dict[str, str]) -> tuple[float, str]:
    """Return the CPU seconds of a command, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(words, capture_output=True, text=True, env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout

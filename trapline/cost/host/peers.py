"""Other tools that observe one instruction of a program, beside Trapline, on this host.

Each runs the program of `trapline.cost.host.peer_program`, whose probed instruction is executed
20480 times; the time of a hit is the run's, without that of a run without the probe.  What is
installed is run; a line names what is not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple

import unicorn

from emu.guest.linux.fs.regular import RegularFile
from emu.isa import Isa
from emu.support import child
from providers import uprobes
from trapline.cost.host.gdb_client import GdbClient
from trapline.cost.host.peer_program import BASE, HITS, PeerProgram, program
from trapline.cost.host.probes import fastest
from trapline.cost.tables import Table, number
from trapline.machine.linux_machine import EvalTime, LinuxOptions, start_guest

_TURNS: Final = 3
# A debugger takes so long for each hit that fewer are enough.
_STOPS: Final = 500
_SECONDS: Final = 60
_PAGE: Final = 4096


class PeerError(Exception):
    """A peer cannot be run; the message says why."""


class PeerFigure(NamedTuple):
    """The time of one hit, as measured with one peer."""

    isa: str
    tool: str
    nanoseconds: float
    hits: int


def measure(isas: Sequence[Isa]) -> tuple[list[PeerFigure], list[str]]:
    """Return the figures of all peers, and a line for each missing one."""
    figures: list[PeerFigure] = []
    left_out: dict[str, None] = {}
    for isa in isas:
        made = program(isa)
        with _file(made) as path:
            for tool, peer in _PEERS.items():
                try:
                    nanoseconds, hits = peer(isa, made, path)
                except PeerError as error:
                    left_out[f"{tool}: not run: {error}"] = None
                else:
                    figures.append(PeerFigure(isa.name, tool, nanoseconds, hits))
    left_out |= dict.fromkeys(_not_run())
    return figures, list(left_out)


@contextmanager
def _file(made: PeerProgram) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "peer"
        path.write_bytes(made.data)
        path.chmod(0o755)
        yield path


def _each(probed: Callable[[], int], plain: Callable[[], object]) -> tuple[float, int]:
    """Return the nanoseconds of a hit, and the number of hits, which has to be that of the program."""
    hits = probed()
    if hits != HITS:
        raise PeerError(f"it saw {hits} of {HITS} hits")
    return max(0.0, fastest(probed, _TURNS) - fastest(plain, _TURNS)) / HITS, hits


# -- the peers


def _trapline(isa: Isa, made: PeerProgram, path: Path) -> tuple[float, int]:
    def run(*, probed: bool) -> int:
        guest = start_guest(LinuxOptions((str(path),), isa=isa, evaltime=EvalTime.EXEC))
        hits = 0

        def hit(*_: object) -> None:
            nonlocal hits
            hits += 1

        if probed:
            process = guest.kernel.first
            assert process is not None
            file = guest.objects.of(process)[0].file
            assert isinstance(file, RegularFile)
            uprobes.Uprobes(guest.kernel).register(file, made.offset, uprobes.Consumer(handler=hit))
        guest.run(None)
        return hits

    return _each(lambda: run(probed=True), lambda: run(probed=False))


def _unicorn(isa: Isa, made: PeerProgram, _path: Path) -> tuple[float, int]:
    def run(*, probed: bool) -> int:
        uc = unicorn.Uc(isa.unicorn.architecture, isa.unicorn.mode)
        uc.mem_map(BASE, _PAGE)
        uc.mem_write(BASE, made.data)
        hits = 0

        def hit(*_: object) -> None:
            nonlocal hits
            hits += 1

        if probed:
            uc.hook_add(unicorn.UC_HOOK_CODE, hit, begin=made.address, end=made.address)
        uc.emu_start(made.entry, made.end)
        return hits

    return _each(lambda: run(probed=True), lambda: run(probed=False))


def _qemu(isa: Isa) -> str:
    found = shutil.which(f"qemu-{isa.name}") or shutil.which(f"qemu-{isa.name}-static")
    if found is None:
        raise PeerError(f"qemu-{isa.name} is not installed")
    return found


def _run(words: Sequence[str]) -> str:
    try:
        ran = child.run(words, timeout=_SECONDS, text=True)
        ran.check_returncode()
    except subprocess.CalledProcessError as error:
        raise PeerError((error.stderr.strip().splitlines() or [str(error)])[-1]) from None
    except (subprocess.SubprocessError, OSError) as error:
        raise PeerError(str(error)) from None
    return str(ran.stderr)


def _plugin(isa: Isa, made: PeerProgram, path: Path) -> tuple[float, int]:
    qemu, compiler = _qemu(isa), shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise PeerError("there is no C compiler for the plugin")
    source, library = path.with_name("plugin.c"), path.with_name("plugin.so")
    if not library.is_file():
        source.write_bytes((files("trapline.cost") / "peer_plugin.c").read_bytes())
        _run([compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source)])

    def run() -> int:
        text = _run([qemu, "-plugin", f"{library},place={made.address:#x}", str(path)])
        return int(text.split()[-1]) if text.split() else 0

    return _each(run, lambda: _run([qemu, str(path)]))


def _gdbstub(isa: Isa, made: PeerProgram, path: Path) -> tuple[float, int]:
    socket = path.with_name("socket")
    socket.unlink(missing_ok=True)
    words = [_qemu(isa), "-g", str(socket), str(path)]
    with child.started(words, subprocess.DEVNULL):
        try:
            with GdbClient(socket) as client:
                client.go_to(made.address)
                start = time.perf_counter_ns()
                for _ in range(_STOPS):
                    client.again(made.address)
                taken = time.perf_counter_ns() - start
        except OSError as error:
            raise PeerError(str(error)) from None
    return taken / _STOPS, _STOPS


def _qiling(_isa: Isa, made: PeerProgram, path: Path) -> tuple[float, int]:
    try:
        qiling, const = import_module("qiling"), import_module("qiling.const")
    except ImportError as error:
        raise PeerError(f"not installed ({error})") from None

    def run(*, probed: bool) -> int:
        # A peer that is not part of Trapline's installation: its errors are of any type.
        try:
            machine = qiling.Qiling([str(path)], str(path.parent), verbose=const.QL_VERBOSE.DISABLED)
            hits = 0

            def hit(*_: object) -> None:
                nonlocal hits
                hits += 1

            if probed:
                machine.hook_address(hit, made.address)
            machine.run()
        except Exception as error:  # noqa: BLE001
            raise PeerError(f"{type(error).__name__}: {error}") from None
        return hits

    return _each(lambda: run(probed=True), lambda: run(probed=False))


_PEERS: Final[dict[str, Callable[[Isa, PeerProgram, Path], tuple[float, int]]]] = {
    "Trapline, a uprobe with a handler in Python": _trapline,
    "Unicorn, a callback in Python": _unicorn,
    "Qiling, a hook in Python": _qiling,
    "qemu-user, a plugin of its TCG": _plugin,
    "qemu-user, a breakpoint of its gdbstub": _gdbstub,
}


def _not_run() -> Iterator[str]:
    """Yield a line for each peer that has no measurement here."""
    yield "Frida: not run: it enters a program by its C library, and the program here has none"
    perf = shutil.which("perf")
    if perf is None:
        yield "perf bench uprobe: not installed"
        return
    command = [perf, "bench", "uprobe", "all"]
    try:
        ran = child.run(command, timeout=_SECONDS, text=True, env={**os.environ, "LC_ALL": "C"})
    except (subprocess.SubprocessError, OSError) as error:
        yield f"perf bench uprobe: {error}"
        return
    if ran.returncode or "Unknown collection" in ran.stdout + ran.stderr:
        yield "perf bench uprobe: this perf has no uprobe collection, or may not run it"
    else:
        yield from ("perf bench uprobe: " + line.strip() for line in ran.stdout.splitlines() if "usecs" in line)


def table(figures: Sequence[PeerFigure], left_out: Sequence[str]) -> Table:
    """Return the figures."""
    return Table(
        "Other tools, on this host",
        ("ISA", "tool", "ns for a hit", "hits"),
        [(one.isa, one.tool, number(one.nanoseconds), str(one.hits)) for one in figures],
        ("The time of a run with the probe, without that of one without it; of the gdbstub: of a stop.", *left_out),
        texts=2,
    )

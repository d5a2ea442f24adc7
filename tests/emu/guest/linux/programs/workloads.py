"""The programs of manifest.toml, in the guest and under qemu-user."""

import shutil
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.launch import ENVIRONMENT
from emu.isa import ISAS
from tests.emu.guest.linux.support import Ran
from tests.support.qemu import below
from trapline.consumer.tracer import Tracer
from trapline.machine import linux_machine

DEBIAN = Path(__file__).parents[5] / ".debian"
QEMU = {isa: shutil.which(f"qemu-{isa}") for isa in ISAS}
PROBE = "pid$target:libc.so.6::entry"


@dataclass(frozen=True)
class Workload:
    """One program, its arguments and its expectations."""

    name: str
    words: tuple[str, ...]
    input: bytes
    probe: str
    oracle: dict[str, str]
    """ISA under which qemu-user runs it, by the ISA that is tested; for those that differ."""
    slow: bool
    """Whether it runs for hundreds of millions of instructions: a benchmark, not a test."""
    unordered: bool = False
    """Whether its threads print lines in an order that the hardware decides."""

    def same(self, one, other):
        """Return whether two outputs are the same."""
        return sorted(one.splitlines()) == sorted(other.splitlines()) if self.unordered else one == other

    def is_there(self, isa):
        """Return whether its program was got."""
        return (DEBIAN / isa / self.words[0].lstrip("/")).exists()


def workloads():
    """Return the workloads of the manifest."""
    rows = tomllib.loads((Path(__file__).parent / "manifest.toml").read_text())["program"]
    return [
        Workload(
            row["name"],
            tuple(row["words"]),
            row.get("input", "").encode(),
            row.get("probe", PROBE),
            row.get("oracle", {}),
            row.get("slow", False),
            row.get("unordered", False),
        )
        for row in rows
    ]


def under_qemu(isa, workload):
    """Return the output of a program under qemu-user, with its exit status on the last line."""
    isa = workload.oracle.get(isa, isa)
    root = DEBIAN / isa
    program = root / workload.words[0].lstrip("/")
    qemu = [QEMU[isa], *below(root), "-0", workload.words[0]]
    told = subprocess.run(
        [*qemu, program, *workload.words[1:]], input=workload.input, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=600, check=False, cwd="/", env=ENVIRONMENT,
    )  # fmt: skip
    status = told.returncode if told.returncode >= 0 else 128 - told.returncode
    return told.stdout + f"exit {status}\n".encode()


def _ignored(_data):
    """Ignore the arguments."""


def in_guest(isa, workload, *, probed, errors=True):
    """Run a program in the guest; with `probed` each function of its C library is a probe.

    Standard error is among what it prints, unless `errors` says otherwise.
    """
    rest, output, problems = bytearray(workload.input), bytearray(), []

    def read(size):
        data = bytes(rest[:size])
        del rest[:size]
        return data

    options = linux_machine.LinuxOptions(
        workload.words, isa=ISAS[isa], root=DEBIAN / isa, report=problems.append,
        standard=Standard(read=read, write=output.extend, error=output.extend if errors else _ignored),
        evaltime=linux_machine.EvalTime.MAIN if probed else linux_machine.EvalTime.EXEC,
    )  # fmt: skip
    machine = linux_machine.start(options)
    fired = 0
    if probed:
        with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
            tracer.session.options.set("zdefs", None)
            tracer.enable(f"{workload.probe} {{ @ = count(); }}")
            tracer.run()
            fired = sum(element.value for element in tracer.aggregations())
    else:
        machine.guest.run(None)
    text = bytes(output) + f"exit {machine.guest.exit_status}\n".encode()
    return Ran(text, machine.guest.engine.instructions, fired, tuple(problems), machine)


SCRIPTS = sorted(path.stem for path in (Path(__file__).parent / "scripts").glob("*.sh"))
# As scripts/save-expected has it.
BEGINNING = """
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/ LANG=C.UTF-8 TERM=dumb
mkdir -p /tmp/script /run; cd /tmp/script; printf %s "$1" > script; . ./script
"""


def script_in_guest(isa, name, *, probed):
    """Run a script and what it starts; return what it printed, and what it is to print.

    With `probed` the functions of the shell's C library are probes.
    """
    folder = Path(__file__).parent / "scripts"
    text = (folder / f"{name}.sh").read_text()
    words = ("/usr/bin/bash", "-c", BEGINNING, "bash", text)
    ran = in_guest(isa, Workload(name, words, b"", PROBE, {}, slow=True), probed=probed, errors=False)
    return ran, (folder / f"{name}.txt").read_bytes()

"""The scripts of tests/trapline/d/toolkit compile for the kernel guest as they are, and are enabled there."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from emu.isa import ISAS
from tests.support.some import some
from tests.trapline.d.reference.transcripts import read_transcripts
from trapline.libdtrace import dtrace_open
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

HOME = Path(__file__).parent / "d" / "toolkit"


def test_every_script_is_run():
    commands = " ".join(one.command for one in read_transcripts(HOME / "toolkit.t"))
    assert {path.name for path in HOME.glob("*.d")} == {word for word in commands.split() if word.endswith(".d")}


@pytest.mark.parametrize("isa", ISAS)
def test_the_scripts_are_enabled_on_the_kernel_guest(isa):
    machine = boot(kernel_guest(KernelOptions(isa=ISAS[isa])))
    for one in some(read_transcripts(HOME / "toolkit.t")):
        words = shlex.split(one.command)
        place = words.index("-s") + 1
        if "-C" in words:
            continue
        with dtrace_open(
            machine.guest, machine.dtrace, foreign=machine.names, libraries=("common", "kernel", isa)
        ) as handle:
            program = handle.fcompile(str(HOME / words[place]), words[place + 1 :])
            assert handle.program_exec(program).matches > 0

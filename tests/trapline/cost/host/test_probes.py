"""Measuring on this host: the machine code does what it is for, on every ISA, and the tools see every hit."""

from __future__ import annotations

import json
import shutil
import subprocess
import tomllib
from contextlib import suppress
from importlib.resources import files

import pytest
import unicorn

from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.cost.host import peers, probes
from trapline.cost.host.peer_program import HITS, program

CODE = tomllib.loads(files("trapline.cost").joinpath("host.toml").read_text("utf-8"))
PLACE, STACK, CONTEXT, BACK = 0x10000, 0x20000, 0x30000, 0x40000
# Where struct ucontext has the pc, from the headers of Linux (asm/ucontext.h, asm/sigcontext.h).
SAVED_PC = {"aarch64": 440, "riscv64": 176}


def machine(isa, code, *arguments):
    """Return a CPU at the start of a function that returns to BACK."""
    uc = unicorn.Uc(isa.unicorn.architecture, isa.unicorn.mode)
    uc.mem_map(PLACE, 0x40000)
    uc.mem_write(PLACE, bytes.fromhex(code))
    calling, word = isa.calling, isa.word
    uc.reg_write(isa.unicorn.ids[isa.registers.sp], STACK)
    if isa.registers.link:
        uc.reg_write(isa.unicorn.ids[isa.registers.link], BACK)
    else:
        uc.mem_write(STACK, BACK.to_bytes(word, "little"))
    for place, value in enumerate(arguments):
        if calling.arguments:
            uc.reg_write(isa.unicorn.ids[calling.arguments[place]], value)
        else:
            uc.mem_write(STACK + word * (1 + place), value.to_bytes(word, "little"))
    return uc


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_a_loop_of_nops_and_one_of_breakpoints_make_the_same_steps(isa):
    """The breakpoint is the only difference, and it is the breakpoint of the ISA."""
    nops, breakpoints = (bytes.fromhex(CODE[isa.name][name]) for name in ("nops", "breakpoints"))
    assert len(nops) == len(breakpoints)
    steps = 0

    def count(*_):
        nonlocal steps
        steps += 1

    uc = machine(isa, nops.hex(), 100)
    uc.hook_add(unicorn.UC_HOOK_CODE, count)
    uc.emu_start(PLACE, BACK)
    assert 300 < steps < 303
    different = next(place for place, (one, other) in enumerate(zip(nops, breakpoints, strict=True)) if one != other)
    uc = machine(isa, breakpoints.hex(), 1)
    uc.hook_add(unicorn.UC_HOOK_INTR, lambda uc, *_: uc.emu_stop())
    with suppress(unicorn.UcError):  # Unicorn has no kernel that takes it
        uc.emu_start(PLACE, BACK)
    stopped = uc.reg_read(isa.unicorn.ids[isa.registers.pc]) - PLACE
    assert stopped in {different, different + 1}


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_the_handler_skips_a_breakpoint_at_which_the_pc_points(isa):
    uc = machine(isa, CODE[isa.name]["handler"], 5, 0, CONTEXT)
    for offset in range(0, 1024, 8):
        uc.mem_write(CONTEXT + offset, (1000 + offset).to_bytes(8, "little"))
    uc.emu_start(PLACE, BACK)
    after = {offset: int.from_bytes(uc.mem_read(CONTEXT + offset, 8), "little") for offset in range(0, 1024, 8)}
    changed = {offset: value - 1000 - offset for offset, value in after.items() if value != 1000 + offset}
    assert changed == ({SAVED_PC[isa.name]: 4} if isa.name in SAVED_PC else {})


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_each_tool_sees_every_hit_of_the_program(isa, tmp_path):
    if shutil.which(f"qemu-{isa.name}") is None:
        pytest.skip(f"qemu-{isa.name} is not installed")
    path = tmp_path / "peer"
    path.write_bytes(program(isa).data)
    path.chmod(0o755)
    assert subprocess.run([f"qemu-{isa.name}", str(path)], check=False).returncode == 0
    figures, left_out = peers.measure([isa])
    assert [one.hits for one in figures if "gdbstub" not in one.tool] == [HITS] * (len(figures) - 1)
    ours = [line for line in left_out if not line.startswith("Frida")]
    assert len(figures) + sum(": not run: " in line for line in ours) == 5
    assert any(line.startswith("Frida") for line in left_out)


def test_this_host_is_measured_or_a_line_says_why_not():
    run = run_trapline(["bench", "--host", "--json", "-"])
    if run.returncode:
        assert run.stderr.startswith("Error: --host: ")
        return
    figures = [json.loads(line) for line in run.stdout.splitlines()]
    assert all(figure["nanoseconds"] > 0 for figure in figures)
    assert any("SIGTRAP" in figure["what"] for figure in figures) or "SIGTRAP: not measured" in run.stderr
    assert any("uprobe" in figure["what"] for figure in figures) or "uprobes: not measured" in run.stderr


def test_a_host_without_uprobes_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setattr(probes, "_PMU", tmp_path / "none")
    with pytest.raises(probes.HostError, match="uprobes: not measured: this kernel has none"):
        probes._uprobes({"probed": {}})

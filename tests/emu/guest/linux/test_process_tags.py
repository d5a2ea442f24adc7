"""Probes of processes that cannot be made: the tags of libdtrace's dt_pid.c."""

from __future__ import annotations

import pytest

from emu.elf.image import Image
from emu.guest.kernel.boot import images
from emu.isa import ISAS, X86_64
from tests.emu.guest.linux.support import run, start
from trapline.consumer.program.compile import ProcessProbeError
from trapline.framework.base.program import ProbeDescription


@pytest.fixture(scope="module")
def machine():
    return start("x86_64", [images.linux(X86_64, "zoo"), "recursion"])[0]


@pytest.mark.parametrize(
    ("tag", "provider", "module", "function", "name"),
    [
        ("D_PROC_FUNC", "pid100", "zoo", "nosuch", "entry"),
        ("D_PROC_NAME", "pid100", "zoo", "fib", "begin"),
        ("D_PROC_NAME", "pid100", "", "-", "entry"),
        ("D_PROC_OFF", "pid100", "zoo", "fib", "fff0"),
        ("D_PROC_ALIGN", "pid100", "zoo", "fib", "2"),
        ("D_PROC_LIB", "pid100", "libc.so", "-", "0"),
        ("D_PROC_GRAB", "pid9999", "zoo", "fib", "entry"),
        ("D_PROC_GRAB", "prov9999", "", "", ""),
    ],
)
def test_a_probe_that_cannot_be_made_has_its_tag(machine, tag, provider, module, function, name):
    with pytest.raises(ProcessProbeError) as caught:
        machine.probes.provide(ProbeDescription(provider, module, function, name))
    assert caught.value.tag == tag


def refused(machine, *fields):
    """The tag with which a description is refused."""
    with pytest.raises(ProcessProbeError) as caught:
        machine.probes.provide(ProbeDescription(*fields))
    return caught.value.tag


def test_offsets_in_a_function_with_a_jump_table_are_refused(tmp_path):
    """As FreeBSD has it: a table is what disassembly fails at, here in place of the nop that fills a gap."""
    program, jump, gap = tmp_path / "zoo", b"\xff\x24\xfd", b"\x66\x0f\x1f\x44\0\0"
    content = bytearray(images.linux(X86_64, "zoo").read_bytes())
    symbol = Image(images.linux(X86_64, "zoo")).symbol("dispatch")
    start_of_text = content.index(Image(images.linux(X86_64, "zoo")).read(symbol.value, symbol.size))
    place = content.index(gap, content.index(jump, start_of_text))
    content[place : place + len(gap)] = b"\x06" * len(gap)
    program.write_bytes(content)
    program.chmod(0o755)
    machine = start("x86_64", [program, "recursion"])[0]
    assert refused(machine, "pid100", "zoo", "dispatch", "0") == "D_PROC_CREATEFAIL"


@pytest.mark.parametrize("isa", ISAS)
def test_more_tracepoints_than_there_may_be_are_refused(isa):
    machine = start(isa, [images.linux(ISAS[isa], "zoo"), "recursion"])[0]
    machine.probes.fasttrap.limit = 0
    assert refused(machine, "pid100", "zoo", "main", "entry") == "D_PROC_CREATEFAIL"
    assert refused(machine, "zoo100", "", "", "args1") == "D_PROC_CREATEFAIL"


@pytest.mark.parametrize(
    ("isa", "good", "bad"),
    [("x86_64", b"-8@%rdi", b"-8@%rzz"), ("aarch64", b"-8@x0", b"-8@q0"), ("riscv64", b"-8@a0", b"-8@q0")],
)
def test_a_marker_whose_argument_means_nothing_costs_that_argument_only(isa, good, bad, tmp_path):
    program = tmp_path / "zoo"
    content = images.linux(ISAS[isa], "zoo").read_bytes()
    assert good + b"\0" in content
    program.write_bytes(content.replace(good + b"\0", bad + b"\0"))
    program.chmod(0o755)
    said = []
    script = "zoo$target:::args* { @calls[probename, arg1] = count(); }"
    ran = run(isa, [program, "markers"], script, report=said.append)
    plain = run(isa, [images.linux(ISAS[isa], "zoo"), "markers"], script)
    assert ran.output == plain.output
    assert ran.fired == plain.fired > 0
    argument, title = bad.decode(), ISAS[isa].title
    line = f"'{argument}' reads as 0: '{argument[3:].strip('%')}' is not a general register of {title}"
    assert [one for one in said if "zoo:args1 " in one] == [f"marker zoo:args1 in zoo: {line}"]

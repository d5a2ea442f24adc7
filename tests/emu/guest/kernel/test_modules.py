"""The kernel guest's modules: loaded, linked, counted and unloaded by its own linker, and probed meanwhile."""

from __future__ import annotations

import random
from itertools import product

import pytest

from emu.guest.kernel.boot import images
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from providers.kinst import PORTS
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

BOTH = [*product(ISAS, TrapPath)]
NEEDS = {"hello": (), "echo": (), "sumcall": ("echo",)}
ECHO = "kldload echo; echo one two > /dev/echo; cat /dev/echo; kldunload echo"


def run(isa, command, program="", path=TrapPath.HOST):
    """Run a command; return its lines, the machine, and the tracer's text and counts if a program was given."""
    screen = bytearray()
    options = KernelOptions(isa=ISAS[isa], trap_path=path, command=command, console=screen.extend)
    machine = boot(kernel_guest(options))
    if not program:
        machine.guest.run(None)
        return screen.decode().splitlines()[3:], machine, "", {}
    with Tracer(machine.guest, machine.dtrace, {"quiet": None, "zdefs": None}, foreign=machine.names) as tracer:
        tracer.enable(program)
        tracer.run()
        assert not tracer.faults
        counts = {element.keys: element.value for element in tracer.aggregations()}
        return screen.decode().splitlines()[3:], machine, tracer.text, counts


def names(lines):
    """Return the files that kldstat shows, with their references, those of DTrace left out."""
    rows = [line.split() for line in lines if " 0x" in line]
    return {row[4]: int(row[1]) for row in rows if row[4].removesuffix(".ko") in {"kernel", *NEEDS}}


@pytest.mark.parametrize("isa", ISAS)
def test_a_module_is_linked_and_does_its_work(isa):
    lines, _, _, _ = run(isa, f"kldload hello sumcall; {ECHO}; callnum 210 1 10; callnum 210 2 1")
    assert lines == [
        "hello, kernel",
        "kldload: can't load echo: module already loaded or in kernel",
        "one two",
        "kldunload: attempt to unload file that was loaded by the kernel",
        "kldunload: can't unload file: Device busy",
        str(sum(range(11)) + len("one two\n")),
        "-1",
        "callnum: system call 210: Invalid argument",
    ]


@pytest.mark.parametrize("isa", ISAS)
def test_what_a_module_needs_comes_and_goes_with_it(isa):
    lines, _, _, _ = run(isa, "kldload sumcall; kldstat; kldunload sumcall; kldstat; ls /dev")
    after = lines.index(lines[0], 1)
    assert names(lines[:after]) == {"kernel": 1, "sumcall.ko": 1, "echo.ko": 1}
    assert names(lines[after:]) == {"kernel": 1}
    assert "echo" not in lines


@pytest.mark.parametrize("isa", ISAS)
def test_kldstat_tells_addresses_sizes_and_modules(isa):
    lines, machine, _, _ = run(isa, "kldload echo; kldstat -v")
    start = machine.guest.image.symbol("kernel_text_start").value
    size = machine.guest.image.symbol("kernel_end").value - start
    assert lines[0] == "Id Refs Address                Size Name"
    assert lines[1] == f" 1    1 {start:#x} {size:8x} kernel (/boot/kernel/kernel)"
    module = next(module for module in machine.guest.modules if module.name == "echo.ko")
    place = next(symbol for symbol in module.symbols if symbol.name == "echo_read")
    at = next(number for number, line in enumerate(lines) if line.endswith("echo.ko (/boot/kernel/echo.ko)"))
    _, _, address, size, *_ = lines[at].split()
    assert int(address, 16) <= place.value < int(address, 16) + int(size, 16)
    assert lines[at + 3].split()[1] == "echo"


class Linker:
    """A model of the kernel's linker: FreeBSD's rules for references, in a few lines."""

    def __init__(self):
        self.refs, self.userrefs = {}, {}

    def load(self, name, *, user=True):
        if name in self.refs:
            return False
        for needed in NEEDS[name]:
            if needed in self.refs:
                self.refs[needed] += 1
            else:
                self.load(needed, user=False)
        self.refs[name], self.userrefs[name] = 1, int(user)
        return True

    def unload(self, name):
        if not self.userrefs.get(name):
            return False
        self.userrefs[name] -= 1
        self._drop(name)
        return True

    def _drop(self, name):
        self.refs[name] -= 1
        if not self.refs[name]:
            del self.refs[name], self.userrefs[name]
            for needed in NEEDS[name]:
                self._drop(needed)


@pytest.mark.parametrize("isa", ISAS)
def test_any_order_of_loading_and_unloading_keeps_the_books(isa):
    chance = random.Random(7)  # noqa: S311  the same every time
    model, commands, expected = Linker(), [], []
    for _ in range(30):
        verb, name = chance.choice(["load", "unload"]), chance.choice([*NEEDS])
        commands.append(f"kld{verb} {name} || echo refused")
        expected.append((getattr(model, verb)(name), dict(model.refs)))
    lines, machine, _, _ = run(isa, "\n".join(f"echo next; {command}; kldstat" for command in commands))
    steps = "\n".join(lines).split("next\n")[1:]
    for command, step, (done, refs) in zip(commands, steps, expected, strict=True):
        assert ("refused" not in step) is done, command
        assert names(step.splitlines()) == {"kernel": 1, **{f"{name}.ko": count for name, count in refs.items()}}
    assert {module.name.removesuffix(".ko") for module in machine.guest.modules} & set(NEEDS) == set(model.refs)
    assert {probe.module for probe in machine.dtrace.table} & set(NEEDS) == set(model.refs)


@pytest.mark.parametrize(("isa", "path"), BOTH)
def test_probes_come_with_a_module_and_keep_it(isa, path):
    program = """fbt:echo::entry { @[probefunc] = count(); }
        fbt:echo:echo_count:entry { printf("%d %s", arg0, execname); stack(1); }
        fbt:echo:echo_count:return { printf("%d", arg1); }"""
    lines, machine, text, counts = run(isa, ECHO, program, path)
    assert lines[:2] == ["one two", "kldunload: can't unload file: Device busy"]
    assert text.split()[:2] == ["8", "echo"]
    assert "echo`echo_write+0x" in text
    assert text.split()[-1] == "8"
    assert counts["echo_write",] == counts["echo_count",] == 1
    guest = machine.guest
    assert not any(point.installed for point in guest.patcher.listing())
    _, plain, _, _ = run(isa, ECHO.removesuffix("; kldunload echo"))
    module, twin = (next(module for module in one.modules if module.name == "echo.ko") for one in (guest, plain.guest))
    for symbol, other in zip(module.functions(), twin.functions(), strict=True):
        assert symbol == other
        assert guest.engine.read(symbol.value, symbol.size) == plain.guest.engine.read(symbol.value, symbol.size)


@pytest.mark.parametrize("isa", ISAS)
def test_probes_go_with_their_module(isa):
    _, machine, _, _ = run(isa, "kldload echo; kldunload echo")
    assert not [probe for probe in machine.dtrace.table if probe.module.startswith("echo")]
    kernel = machine.guest.image
    end = kernel.symbol("kernel_text_end").value
    left = [point.address for point in machine.guest.patcher.listing() if point.address >= end]
    assert all(machine.guest.modules.locate(address) for address in left)  # another module's, which is still there


@pytest.mark.parametrize("isa", ISAS)
def test_a_traced_module_takes_the_time_of_one_that_is_not(isa):
    command = "kldload echo; seq 1 20 > /dev/echo; cat /dev/echo; sleep 0.01; kldload sumcall; callnum 210 1 1000"
    lines, plain, _, _ = run(isa, command)
    seen, machine, _, counts = run(isa, command, "fbt:::entry, fbt:::return { @[probemod] = count(); }")
    assert seen == lines
    assert machine.guest.now() == plain.guest.now()
    assert counts["echo",] > 3
    assert counts["sumcall",] > 1


@pytest.mark.parametrize(("isa", "path"), [(isa, path) for isa, path in BOTH if isa in PORTS])
def test_kinst_reaches_into_modules(isa, path):
    options = KernelOptions(isa=ISAS[isa], trap_path=path, command=f"kldload echo; spin 1; {ECHO}")
    machine = boot(kernel_guest(options))
    with Tracer(machine.guest, machine.dtrace, {"quiet": None}) as tracer:
        tracer.enable("syscall::kldload:return /(int)arg0 > 0/ { exit(0); }")
        tracer.run()
    with Tracer(machine.guest, machine.dtrace, {"quiet": None}) as tracer:
        matched = tracer.enable("kinst:echo.ko:echo_count: { @[probename] = count(); }")
        tracer.run()
        counts = {int(element.keys[0]): element.value for element in tracer.aggregations()}
    assert set(counts.values()) == {1}
    assert len(counts) == matched


@pytest.mark.parametrize("isa", ISAS)
def test_a_file_that_is_not_a_module_is_refused_and_nothing_stays(isa):
    whole = (images.built(ISAS[isa]) / "boot/kernel/echo.ko").read_bytes()
    bad = {f"bad/cut{size}.ko": whole[:size] for size in range(0, len(whole), len(whole) // 12)}
    fields = (0x28, 0x3A, 0x3C, 0x3E) if ISAS[isa].word == 8 else (0x20, 0x2E, 0x30, 0x32)
    for at in (4, 16, 18, *fields):  # class, type, machine, e_shoff, e_shentsize, e_shnum, e_shstrndx
        bad[f"bad/flip{at}.ko"] = whole[:at] + bytes((whole[at] ^ 0xFF,)) + whole[at + 1 :]
    bad["bad/undefined.ko"] = whole.replace(b"\0make_dev\0", b"\0fake_dev\0")
    assert bad["bad/undefined.ko"] != whole
    screen = bytearray()
    loads = "\n".join(f"kldload /{name}" for name in bad)
    files = {**bad, "etc/rc": f"{loads}\nkldstat; kldload echo; kldstat\n".encode()}
    guest = KernelGuest(ISAS[isa], files=files, console=screen.extend)
    guest.boot()
    guest.run(None)
    lines = screen.decode().splitlines()[3:]
    assert sum("error occurred while loading" in line for line in lines) == len(bad)
    assert "link_elf_obj: symbol fake_dev undefined" in lines
    assert names(lines[-4:]) == {"kernel": 1, "echo.ko": 1}
    assert sum("kernel" in line and "0x" in line for line in lines) == 2


@pytest.mark.parametrize("isa", ISAS)
def test_no_built_file_tells_where_it_was_built(isa):
    built = images.built(ISAS[isa])
    assert not [path for path in built.rglob("*") if path.is_file() and b"/testbins/" in path.read_bytes()]

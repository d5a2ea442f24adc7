"""Dynamic programs: the real ld.so, shared objects, and one that is loaded and unloaded while it is probed.

The C library is that of Debian's cross compilers, or this host's; where neither is there the test
is skipped.
"""

import shutil
from pathlib import Path

import pytest

from emu.guest.kernel import images
from emu.isa import ISAS
from tests.emu.guest.linux.support import expected, run
from trapline.ftrace.definition import parse
from trapline.ftrace.tracing import EventTrace, open_image, symbol_offset
from trapline.machine.linux_machine import EvalTime, LinuxOptions, start_guest

LIBRARIES = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2", "libpthread.so.0")
LOADERS = {
    "x86_64": "lib64/ld-linux-x86-64.so.2",
    "aarch64": "lib/ld-linux-aarch64.so.1",
    "riscv64": "lib/ld-linux-riscv64-lp64d.so.1",
    "i386": "lib/ld-linux.so.2",
}


# Where a PC has them itself (Debian: libc6-i386, lib32stdc++6).
OWN = {
    "x86_64": ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64"),
    "i386": ("/lib/i386-linux-gnu", "/usr/lib/i386-linux-gnu", "/lib32", "/usr/lib32"),
}


def sources(isa):
    """Return where this host may have the libraries of an ISA."""
    return [*map(Path, OWN.get(isa, ())), Path(f"/usr/{isa}-linux-gnu/lib")]


@pytest.fixture(scope="module", params=ISAS)
def system(request, tmp_path_factory):
    """Return an ISA and a root that has the dynamic test programs and what they need."""
    isa = request.param
    root = tmp_path_factory.mktemp(isa)
    for name in ("bin", "lib", "lib64"):
        (root / name).mkdir()
    for name in (*LIBRARIES, LOADERS[isa]):
        found = next((place / Path(name).name for place in sources(isa) if (place / Path(name).name).exists()), None)
        if found is None:
            pytest.skip(f"no {name} for {isa} on this host (Debian: libstdc++6-{isa.replace('_', '-')}-cross)")
        shutil.copy(found, root / (name if "/" in name else f"lib/{name}"))
    for name in ("zoo-dyn", "libzoo.so", "plugin.so"):
        shutil.copy(images.linux(ISAS[isa], name), root / "bin" / name)
    return isa, root


@pytest.mark.parametrize("case", ["recursion", "cxx", "threads", "signals", "processes", "plugin", "markers"])
def test_a_dynamic_program_prints_what_it_prints_on_linux(system, case):
    isa, root = system
    assert run(isa, ["/bin/zoo-dyn", case], root=root).output == expected(case, isa)


def test_with_every_function_of_every_object_probed_it_is_the_same(system):
    isa, root = system
    plain = run(isa, ["/bin/zoo-dyn", "plugin"], root=root)
    probed = run(isa, ["/bin/zoo-dyn", "plugin"], "pid$target:::entry, pid$target:::return { @ = count(); }", root=root)
    assert probed.output == plain.output
    assert probed.instructions == plain.instructions
    assert probed.fired > 500


def test_an_object_that_is_loaded_twice_is_probed_twice(system):
    isa, root = system
    program = "pid$target:plugin.so:plugin_enter:entry { @ = count(); }"
    ran = run(isa, ["/bin/zoo-dyn", "plugin"], program, root=root, zero=True)
    assert ran.output == expected("plugin", isa)
    assert ran.fired == 2


def test_uprobes_in_an_object_that_comes_and_goes_are_machine_codes_too(system, monkeypatch):
    """A function is hit, its object is unloaded and loaded again: the lines are those of Python."""
    isa, root = system
    shown = {}
    for engine in ("python", "native"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        options = LinuxOptions(("/bin/zoo-dyn", "plugin"), isa=ISAS[isa], root=root, evaltime=EvalTime.EXEC)
        guest, lines = start_guest(options), []
        trace = EventTrace(guest, lines.append)
        offset = symbol_offset(open_image(guest, "/bin/plugin.so"), "plugin_enter")
        for line in (f"p:enter /bin/plugin.so:{offset:#x}", f"r:leave /bin/plugin.so:{offset:#x} $retval"):
            trace.add(parse(line, ISAS[isa]))
        guest.run(None)
        trace.finish()
        shown[engine] = "".join(lines), trace.count, guest.engine.instructions, guest.exit_status
    assert shown["native"] == shown["python"]
    assert shown["native"][1] > 1

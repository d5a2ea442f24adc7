"""Dynamic programs: the real ld.so, shared objects, and one that is loaded and unloaded while it is probed.

Where this host has no libraries for an ISA (`tests.support.dynamic_root`) the test is skipped.
"""

import pytest

from emu.isa import ISAS
from tests.emu.guest.linux.support import expected, run
from tests.support.dynamic_root import fill
from trapline.ftrace.definition import parse
from trapline.ftrace.uprobe_events import EventTrace, open_image, symbol_offsets
from trapline.machine.linux_machine import EvalTime, LinuxOptions, start_guest


@pytest.fixture(scope="module", params=ISAS)
def system(request, tmp_path_factory):
    """Return an ISA and a root that has the dynamic test programs and what they need."""
    isa = request.param
    root = tmp_path_factory.mktemp(isa)
    missing = fill(root, isa)
    if missing:
        pytest.skip(missing)
    return isa, root


@pytest.mark.parametrize("case", ["recursion", "cxx", "threads", "signals", "processes", "plugin", "markers"])
def test_a_dynamic_program_prints_what_it_prints_on_linux(system, case):
    isa, root = system
    assert run(isa, ["/bin/zoo-dyn", case], root=root).output == expected(case, isa)


@pytest.mark.exhaustive
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
    for engine in ("reference", "native"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        options = LinuxOptions(("/bin/zoo-dyn", "plugin"), isa=ISAS[isa], root=root, evaltime=EvalTime.EXEC)
        guest, lines = start_guest(options), []
        trace = EventTrace(guest, lines.append)
        (offset,) = symbol_offsets(open_image(guest, "/bin/plugin.so"), "plugin_enter")
        for line in (f"p:enter /bin/plugin.so:{offset:#x}", f"r:leave /bin/plugin.so:{offset:#x} $retval"):
            trace.add(parse(line, ISAS[isa]))
        guest.run(None)
        trace.finish()
        shown[engine] = "".join(lines), trace.count, guest.engine.instructions, guest.exit_status
    assert shown["native"] == shown["reference"]
    assert shown["native"][1] > 1

"""Where a file's own addresses are in a process, whichever way its linker has laid it out."""

import itertools

import pytest

from emu.isa import ISAS
from tests.emu.guest.linux.support import run, start
from tests.support.small_elf import BASE, STATUS, TELL, Layout, program
from trapline.machine.linux_machine import EvalTime

LAYOUTS = {
    "r-x-w": ("r", "x", "w"),
    "x-w": ("x", "w"),
    "two segments of code": ("r", "x", "y", "w"),
    "two of code, no data": ("x", "y"),
    "relro beside data": ("r", "x", "w", "w"),
    "code last": ("r", "w", "x"),
}
PROBES = """
pid$target:a.out:work:entry { @fired["entry"] = count(); }
pid$target:a.out:work:return { @fired["return"] = count(); }
"""


@pytest.fixture
def placed(tmp_path):
    def place(*arguments, **options):
        path = tmp_path / "small"
        path.write_bytes(program(*arguments, **options))
        path.chmod(0o755)
        return path

    return place


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("page", [0x1000, 0x4000, 0x1_0000])
@pytest.mark.parametrize("kinds", LAYOUTS.values(), ids=LAYOUTS)
def test_probes_fire_where_segments_share_a_page_of_the_file(placed, isa, page, kinds):
    for when, shared in itertools.product((EvalTime.MAIN, EvalTime.EXEC), (False, True)):
        path = placed(Layout(isa, page, 0 if shared else BASE), kinds, shared=shared)
        found = run(isa, [path], PROBES, evaltime=when)
        assert found.output == f"exit {STATUS}\n"
        assert found.of("fired") == {("entry",): 2, ("return",): 2}
        guest = start(isa, [path], evaltime=EvalTime.EXEC)[0].guest
        (loaded,) = guest.objects.of(guest.kernel.first)
        assert guest.pc() == loaded.image.entry + loaded.bias
        assert guest.locate_user(guest.pc()).symbol == "_start"


@pytest.mark.parametrize("isa", ISAS)
def test_a_semaphore_is_set_where_the_program_looks(placed, isa):
    path = placed(Layout(isa), ("r", "x", "w", "w"), work=TELL, marked=True)
    assert run(isa, [path]).output == "exit 0\n"
    found = run(isa, [path], "small$target:::mark { @fired[probename] = count(); }")
    assert found.output == "exit 1\n"
    assert found.of("fired") == {("mark",): 2}

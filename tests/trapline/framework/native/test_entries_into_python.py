"""What enters Python: the page lists all of it, and a traced kernel enters Python for its clock alone."""

import re
from collections import Counter

import pytest

from emu.engine import native_callbacks
from emu.engine.handlers import Handlers
from emu.engine.run import Running
from emu.isa import ISAS
from tests.support.command import ROOT
from tests.support.some import some
from trapline.consumer.tracer import Tracer
from trapline.framework.native.upcall_code import Upcall
from trapline.framework.native.upcalls import Upcalls
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

_SECTION = re.compile(r"^## What enters Python.*?(?=^## )", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| `(\w+)`\s*\|", re.MULTILINE)
_PART = re.compile(r"^(?:A|An) \*\*(\w+).*?(?=^(?:A|An) \*\*|\Z)", re.MULTILINE | re.DOTALL)
# Machine code names a function of Python in one of two ways: a symbol of the builder's, a name of the templates.
_CALLED = re.compile(r"\$(on_\w+)|symbols\[\"(on_\w+)\"\]|(?<=, symbols\[\"hooked\"\], symbols\[\")(on_\w+)")
# A probe of each kind that fires in the kernel: breakpoints, calls of probes, calls by an id.
PROGRAM = "fbt:::entry, fbt:::return, syscall:::, sched::: { @[probefunc] = count(); }"


def rows(part):
    """Return the names in the table of one of the four ways."""
    section = _SECTION.search((ROOT / "docs" / "engine.md").read_text(encoding="utf-8"))[0]
    parts = {match[1]: match[0] for match in _PART.finditer(section)}
    return _ROW.findall(parts[part])


def test_the_page_lists_the_callbacks_that_machine_code_calls():
    sources = [*(ROOT / "emu").rglob("*.ll"), *(ROOT / "emu" / "engine").rglob("*.py")]
    called = {name for path in sources for found in _CALLED.findall(path.read_text(encoding="utf-8")) for name in found}
    assert sorted(rows("callback")) == sorted(called - {""})


def test_the_page_lists_the_upcalls():
    assert sorted(rows("upcall")) == sorted(which.name for which in Upcall)


def test_every_upcall_is_made_somewhere():
    folder = ROOT / "trapline" / "framework" / "native"
    text = "".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.py") if path.name != "upcalls.py")
    by_name = set(re.findall(r'"(speculate|commit|discard)", speculation', text))
    for which in some(Upcall):
        assert f"Upcall.{which.name}" in text or which.name.lower() in by_name, which.name


@pytest.mark.skipif(not native_callbacks.available(), reason="llvmlite is not installed")
@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_a_traced_kernel_enters_python_for_its_clock_alone(isa, monkeypatch):
    entered = Counter()

    def counted(owner, name):
        function = getattr(owner, name)

        def call(self, *arguments):
            entered[name] += 1
            return function(self, *arguments)

        monkeypatch.setattr(owner, name, call)

    for name in ("breakpoint", "late", "trap", "load", "fired", "left"):
        counted(Handlers, name)
    counted(Running, "_run_once")
    counted(Upcalls, "_called")
    monkeypatch.setenv("TRAPLINE_ENGINE", "native")
    machine = boot(kernel_guest(KernelOptions(isa=isa, command="getpid 10000000")))
    guest = machine.guest
    with Tracer(guest, machine.dtrace, {"aggrate": "1us"}, provide=machine.probes.provide) as tracer:
        tracer.enable(PROGRAM)
        tracer.session.go()
        guest.run(guest.now() + 50_000_000)
        assert entered["breakpoint"]
        entered.clear()
        ticks = []
        deliver = guest._deliver_tick
        monkeypatch.setattr(guest, "_deliver_tick", lambda: (ticks.append(guest.now()), deliver()))
        guest.run(guest.now() + 30_000_000)
    assert entered == {"_run_once": len(ticks) + 1}

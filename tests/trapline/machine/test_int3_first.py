"""Static probes of a kernel with several CPUs are patched behind a breakpoint, while all CPUs run."""

from collections import Counter

import pytest

from emu.guest.kernel.smp.text_changes import Patching
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import AARCH64, ISAS, RISCV64, X86_64
from emu.probe.text_poke import Step, breakpoint_first
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

CPUS = 3
WORK = "spin 99 & spin 99 & ls /bin & ls /sbin & wait"
# After the first fork, in the middle of the work, other consumers come one by one, for 1 ms each.
ROUNDS = 6
OUTER = """
fbt::sys_*:entry /execname != "sh"/ { @[execname, probefunc] = count(); }
fbt::sys_fork:entry { printf("%d", cpu); }
"""
INNER = "lockstat:::adaptive-acquire, lockstat:::adaptive-release { @ = count(); } tick-1ms { exit(0); }"


class Run:
    """A run in which probes are enabled and disabled while the CPUs run through their sites."""

    def __init__(self, isa, seed=0, **options):
        screen = bytearray()
        options = KernelOptions(isa, cpus=CPUS, seed=seed, command=WORK, console=screen.extend, **options)
        machine = boot(kernel_guest(options))
        guest = machine.guest
        text = guest.image.segments[0]
        pristine = guest.engine.read(text.vaddr, len(text.data))
        self.hits = Counter()
        """Where the CPU went on -> hits of temporary breakpoints."""
        self.cpus = set()
        """The CPUs that hit them."""
        self.steps = Counter()
        """The CPU that patched -> steps."""
        with Tracer(guest, machine.dtrace) as outer:
            outer.session.options.set("switchrate", "1ms")
            outer.enable(OUTER)
            events = outer.events()
            next(events)
            self._watch(guest)
            self.fired = []
            for _ in range(ROUNDS):
                with Tracer(guest, machine.dtrace) as inner:
                    inner.session.options.set("statusrate", "1ms")
                    inner.enable(INNER)
                    inner.run()
                    self.fired += [element.value for element in inner.aggregations()]
            list(events)
            self.seen = {element.keys: element.value for element in outer.aggregations()}
        self.took = guest.now()
        self.printed = sorted(screen.decode().splitlines())
        assert guest.engine.read(text.vaddr, len(text.data)) == pristine

    def _watch(self, guest):
        """Record the handler that is there while code is written, and the steps."""
        sites = {point.address: point for point in guest.patcher.listing() if point.owner == "sdt"}
        jump, traps, trap = guest.isa.jump, guest.traps, guest.isa.traps.breakpoints[-1]
        add, remove, recording = traps.add, traps.remove, {}

        def added(handler, describe=None):
            def recorded(address, frame, extra):
                went = []
                go_to = frame.go_to
                frame.go_to = lambda target, adds=0: (went.append(target), go_to(target, adds))
                answer = handler(address, frame, extra)
                del frame.go_to
                if answer:
                    point = sites[address]
                    assert guest.engine.read(address, len(trap)) == trap
                    goes = "over" if went == [address + len(jump.nop)] else "jump"
                    assert goes == "over" or jump.patch(address, *went) == point.patch
                    self.hits[goes] += 1
                    self.cpus.add(guest.cpu)
                return answer

            recording[handler] = recorded
            add(recorded, describe)

        traps.add, traps.remove = added, lambda handler: remove(recording.pop(handler))
        guest.engine.code.on_code(
            guest.image.symbol("gate_text_poke").value,
            lambda: self.steps.update([guest.cpu]),
        )


@pytest.mark.parametrize("isa", ISAS)
def test_what_is_counted_does_not_depend_on_the_method(isa):
    plain, dance = Run(ISAS[isa]), Run(ISAS[isa], patching=Patching.INT3_FIRST)
    if isa == "aarch64":  # every site is a word that a fetch sees whole
        assert not dance.hits
    else:
        assert dance.hits["jump"], "of probes that are enabled"
        assert dance.hits["over"], "of probes that are disabled"
        assert len(dance.cpus) > 1
    assert dance.seen == plain.seen
    assert dance.printed == plain.printed
    assert all(dance.fired)
    assert plain.steps == {}
    assert dance.steps.total() > 0
    assert dance.took != plain.took, "the CPUs are interrupted"


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("patching", [Patching.RENDEZVOUS, Patching.INT3_FIRST], ids=lambda patching: patching.value)
def test_both_trap_paths_have_the_same_run(isa, patching):
    host = Run(ISAS[isa], seed=2, patching=patching)
    assert vars(host) == vars(Run(ISAS[isa], seed=2, patching=patching, trap_path=TrapPath.GUEST))


def test_a_patch_is_written_in_three_steps_unless_a_fetch_sees_it_whole():
    jump = bytes.fromhex("e9 00010203")
    assert breakpoint_first(X86_64, 0x1000, jump) == (
        Step(0x1000, b"\xcc"),
        Step(0x1001, jump[1:], whole=False),
        Step(0x1000, jump[:1]),
    )
    assert breakpoint_first(X86_64, 0x1000, b"\xf0") == (Step(0x1000, b"\xf0"),)
    assert breakpoint_first(AARCH64, 0x1000, jump[:4]) == (Step(0x1000, jump[:4]),)
    assert breakpoint_first(RISCV64, 0x1000, jump[:4]) == (Step(0x1000, jump[:4]),)
    assert breakpoint_first(RISCV64, 0x1002, jump[:4]) == (
        Step(0x1002, bytes.fromhex("0290")),
        Step(0x1004, jump[2:4], whole=False),
        Step(0x1002, jump[:2]),
    )

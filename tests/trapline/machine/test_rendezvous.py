"""Static probes of a kernel with several CPUs are patched at a rendezvous of all CPUs."""

from collections import Counter

import pytest
from click.testing import CliRunner

from emu.guest.kernel.smp.text_changes import Patching
from emu.isa import ISAS, RISCV64, X86_64
from trapline.cli import main
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, NoKernelError, boot, kernel_guest

CPUS = 3
WORK = "spin 99 & spin 99 & ls /bin | wc & wait"
# A second consumer begins after the first event, in the middle of the work.
OUTER = 'fbt::smp_rendezvous_action:entry { @["came", cpu] = count(); } fbt::sys_fork:entry { printf("%d", cpu); }'
INNER = "sched:::on-cpu, sched:::off-cpu { @[cpu] = count(); } tick-2ms { exit(0); }"


class Run:
    """A run with a consumer that begins in the middle: how it came, and what was counted."""

    def __init__(self, isa, **options):
        screen = bytearray()
        machine = boot(kernel_guest(KernelOptions(isa, cpus=CPUS, command=WORK, console=screen.extend, **options)))
        guest, patcher = machine.guest, machine.guest.patcher
        text = guest.image.segments[0]
        pristine = guest.engine.read(text.vaddr, len(text.data))
        came, self.at_patch = Counter(), []
        guest.engine.code.on_code(guest.image.symbol("smp_rendezvous_action").value, lambda: came.update([guest.cpu]))
        install = patcher.install

        def installed(tracepoint):
            if tracepoint.owner == "sdt":
                self.at_patch.append(dict(came))
            install(tracepoint)

        patcher.install = installed
        with Tracer(guest, machine.dtrace) as outer:
            outer.session.options.set("switchrate", "1ms")
            outer.enable(OUTER)
            events = outer.events()
            next(events)
            with Tracer(guest, machine.dtrace) as inner:
                inner.session.options.set("statusrate", "1ms")
                inner.enable(INNER)
                inner.run()
                self.switches = sum(element.value for element in inner.aggregations())
            list(events)
            self.seen = {element.keys[1]: element.value for element in outer.aggregations()}
        self.came, self.took = dict(came), guest.now()
        self.printed = sorted(screen.decode().splitlines())
        assert guest.engine.read(text.vaddr, len(text.data)) == pristine


@pytest.mark.parametrize("isa", ISAS)
def test_all_cpus_come_before_a_site_is_patched(isa):
    run = Run(ISAS[isa], patching=Patching.RENDEZVOUS)
    assert run.at_patch
    assert run.at_patch == [dict.fromkeys(range(CPUS), number) for number in range(1, len(run.at_patch) + 1)]
    assert run.came == dict.fromkeys(range(CPUS), 2 * len(run.at_patch)), "it is disabled in the same way"
    assert set(run.seen) == set(range(CPUS)), "D sees the function on every CPU"
    assert run.switches > 0


def test_a_rendezvous_takes_time_and_is_repeatable():
    plain, *runs = Run(RISCV64), Run(RISCV64, patching=Patching.RENDEZVOUS), Run(RISCV64, patching=Patching.RENDEZVOUS)
    assert vars(runs[0]) == vars(runs[1])
    assert plain.seen == plain.came == {}
    assert plain.printed == runs[0].printed
    assert plain.took != runs[0].took


def test_one_cpu_has_no_rendezvous():
    with pytest.raises(NoKernelError, match="--cpus"):
        kernel_guest(KernelOptions(X86_64, patching=Patching.RENDEZVOUS))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-x", "patch=rendezvous"), "add --cpus N"),
        (("-x", "patch=int3-first"), "patch=int3-first is for several CPUs: add --cpus N"),
        (("-x", "patch=rendezvous", "--guest", "linux", "-c", "true"), "for the teaching kernel"),
        (("-x", "patch=luck"), "stop-machine"),
    ],
)
def test_a_wrong_method_is_one_line(arguments, message):
    result = CliRunner().invoke(main, ["dtrace", *arguments, "-n", "BEGIN { exit(0); }"])
    assert result.exit_code != 0
    assert message in result.output

"""The kernel guest on every ISA: it boots, runs programs, keeps time, and panics with a message."""

import pytest

from emu.engine import native_callbacks
from emu.guest.base import RunState
from emu.guest.kernel.grab import grab, is_command, run_to_start
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.panic import KernelPanicError
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from trapline.consumer.tracer import Tracer
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

isas = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)


def run(isa, script=None, **options):
    """Run a script in a fresh guest; returns the guest and what it printed."""
    screen = bytearray()
    files = {"etc/rc": script.encode()} if script is not None else {}
    guest = KernelGuest(isa, files=files, console=screen.extend, **options)
    guest.boot()
    assert guest.run(60_000_000_000) is RunState.FINISHED
    return guest, screen.decode()


@isas
def test_the_start_up_script_runs_to_power_off(isa):
    guest, _screen = run(isa)
    assert guest.exit_status == 0


def test_every_isa_prints_the_same():
    screens = [run(isa)[1].splitlines() for isa in ISAS.values()]
    # How much memory is left depends on the size of the kernel.
    texts = [[line for line in screen if not line.startswith("avail memory")] for screen in screens]
    assert len(texts[0]) > 20
    assert texts[0] == texts[1] == texts[2]


@isas
def test_a_run_is_the_same_every_time(isa):
    first, second = (run(isa) for _ in range(2))
    assert first[1] == second[1]
    assert first[0].engine.instructions == second[0].engine.instructions
    assert first[0].now() == second[0].now()


@isas
def test_the_python_engine_runs_the_same_instructions_as_the_native_one(isa):
    if not native_callbacks.available():
        pytest.skip("llvmlite is not installed")
    script = "echo one two | wc\nforktest\n"
    runs = [run(isa, script, accelerated=accelerated) for accelerated in (True, False)]
    assert runs[0][1] == runs[1][1]
    assert runs[0][0].engine.instructions == runs[1][0].engine.instructions
    assert runs[0][0].now() == runs[1][0].now()


@isas
def test_the_shell_pipes_redirects_and_chains(isa):
    _guest, screen = run(
        isa, "seq 1 100 | sort -r | head -n 3 > /tmp1\ncat /tmp1\ntrue && echo yes\nfalse || echo no\n"
    )
    assert "99\n98\n97\n" in screen
    assert "yes\nno\n" in screen


@isas
def test_a_program_that_faults_is_killed_and_the_system_continues(isa):
    _guest, screen = run(isa, "crash\necho still here\n")
    assert "still here\n" in screen


@isas
def test_a_spinning_program_is_preempted_by_the_clock(isa):
    _guest, screen = run(isa, "spin 3000 &\necho not starved\nwait\n")
    assert screen.index("not starved") < screen.index("spin: 3000 rounds")


@isas
def test_a_deadline_in_virtual_time_ends_a_run_that_never_ends(isa):
    guest = KernelGuest(isa, files={"etc/rc": b"spin 100000000000\n"})
    guest.boot()
    deadline = guest.now() + 50_000_000
    assert guest.run(deadline) is RunState.RUNNING
    assert deadline <= guest.now() < deadline + 1_000_000


@isas
def test_both_trap_paths_take_the_same_virtual_time(isa):
    times = {run(isa, "cat /etc/rc\n", trap_path=path)[0].now() for path in TrapPath}
    assert len(times) == 1


@isas
def test_a_kernel_that_runs_wild_is_reported_with_registers_and_stack(isa):
    guest = KernelGuest(isa)
    guest.boot()
    nowhere = isa.kernel_base + 0x3000_0000
    guest.engine.write_register(isa.registers.pc, nowhere)
    with pytest.raises(KernelPanicError) as panic:
        guest.run(1_000_000_000)
    report = panic.value.report()
    assert f"{nowhere:x}" in report
    assert isa.registers.sp in report
    assert "\n" not in str(panic.value)


@pytest.mark.exhaustive
@isas
def test_a_kernel_stack_overflow_ends_in_a_panic_and_not_in_a_loop(isa):
    guest = KernelGuest(isa)
    guest.boot()
    guest.engine.write_register(isa.registers.sp, isa.kernel_base + 0x3000_0000)
    guest.engine.write_register(isa.registers.pc, guest.image.symbol("malloc").value)
    with pytest.raises(KernelPanicError):
        guest.run(1_000_000_000)


@isas
def test_a_kernel_probe_that_comes_while_the_cpu_is_in_user_mode_fires(isa):
    screen = bytearray()
    machine = boot(kernel_guest(KernelOptions(isa=isa, command="cat /etc/motd", console=screen.extend)))
    process = grab(machine.guest, is_command)
    run_to_start(machine.guest, process, main=True)
    assert not isa.is_kernel_address(machine.guest.pc())
    with Tracer(machine.guest, machine.dtrace, {"quiet": None}) as tracer:
        tracer.enable(f"fbt::sys_read:entry /pid == {process.pid}/ {{ @ = count(); }}")
        tracer.run()
        assert [element.value for element in tracer.aggregations()] == [2]
    assert screen.endswith(b"Everything you see here may be probed.\n")

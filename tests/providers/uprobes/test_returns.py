"""Return probes of functions that return with another stack pointer, and of frames that are left without a return.

The counts are those of Linux' rule (kernel/events/uprobes.c, uprobe_handle_trampoline): a return belongs to the last
entry unless the frame of the one before it is gone.
"""

import pytest

from emu.native import available
from providers.uprobes import Consumer, Uprobes
from tests.emu.guest.linux.elf_program import PAGE, elf_program
from tests.emu.guest.linux.support import start
from tests.support.native import LoggingFramework
from trapline.machine.linux_machine import EvalTime

# Each program calls its function `outer` five times, and exits with its result, 7.
ROUNDS, RESULT = 5, 7

# outer: sub $16, %rsp; call inner; ret; inner: mov $7, %eax; ret $16
CLEANS_ITS_ARGUMENTS = {
    "x86_64": (
        "bb05000000 e80d000000 ffcb 75f7 89c7 b83c000000 0f054883ec10 e801000000 c3b807000000 c21000",
        {"outer": 23, "inner": 33},
    ),
    "i386": (
        "bb05000000 e80d000000 4b 75f8 89c3 b801000000 cd80 9083ec10 e802000000 c3 90b807000000 c21000",
        {"outer": 23, "inner": 33},
    ),
}
# outer: save the stack pointer; call middle; resumed: result 7; return
# middle: make a frame; call inner
# inner: restore outer's stack pointer; jump to resumed
JUMPS_OVER_FRAMES = {
    "x86_64": (
        """
        bb05000000 e80d000000 ffcb 75f7 89c7 b83c000000 0f05
        4889e5 e806000000 b807000000 c3
        4883ec08 e800000000
        4889ec ebec
        """,
        {"outer": 23, "middle": 37, "inner": 46},
    ),
    "i386": (
        """
        bb05000000 e80d000000 4b 75f8 89c3 b801000000 cd80 90
        89e5 e807000000 b807000000 c3 90
        83ec08 e800000000
        89ec ebed
        """,
        {"outer": 23, "middle": 37, "inner": 45},
    ),
    "aarch64": (
        """
        b3008052 06000094 73060071 c1ffff54 a80b8052 010000d4 1f2003d5
        fd7bbfa9 fd030091 05000094 e0008052 fd7bc1a8 c0035fd6 1f2003d5
        fd7bbfa9 01000094
        bf030091 f9ffff17
        """,
        {"outer": 0x1C, "middle": 0x38, "inner": 0x40},
    ),
    "riscv64": (
        """
        93045000 ef008001 9384f4ff e39c04fe 9308d005 73000000 13000000
        130101ff 23341100 13040100 ef008001 13057000 83308100 13010101 67800000 13000000
        130101ff ef004000
        13010400 6ff01ffe
        """,
        {"outer": 0x1C, "middle": 0x40, "inner": 0x48},
    ),
}
WATCHED = [
    *((isa, CLEANS_ITS_ARGUMENTS[isa], names, names) for isa in CLEANS_ITS_ARGUMENTS
      for names in (("inner",), ("outer",), ("outer", "inner"))),
    *((isa, JUMPS_OVER_FRAMES[isa], names, ("outer",)) for isa in JUMPS_OVER_FRAMES
      for names in (("outer", "inner"), ("outer", "middle"), ("outer", "middle", "inner"))),
]  # fmt: skip


@pytest.mark.parametrize("native", [False, pytest.param(True, marks=pytest.mark.skipif(
    not available(), reason="llvmlite is not installed"))])  # fmt: skip
@pytest.mark.parametrize(("isa", "program", "watched", "returning"), WATCHED)
def test_a_return_belongs_to_the_last_function_whose_frame_exists(isa, program, watched, returning, native, tmp_path):
    code, functions = program
    path = tmp_path / "program"
    path.write_bytes(elf_program(isa, bytes.fromhex(code), writable=False))
    path.chmod(0o755)
    machine, _ = start(isa, [path], evaltime=EvalTime.EXEC)
    guest, framework = machine.guest, LoggingFramework(native=native)
    uprobes = Uprobes(guest.kernel)
    results = [guest.isa.registers.slots[name] for name in guest.isa.calling.results]
    numbers = {}
    for name in watched:
        number = numbers[name] = framework.probe_create(name)
        consumer = Consumer(
            ret_handler=lambda function, _frame, number=number: framework.probe(
                number, function, *(guest.engine.words[one] for one in results)
            ),
            ret_runs=framework.native_runs(number),
        )
        uprobes.register(guest.objects.of(guest.kernel.first)[0].file, PAGE + functions[name], consumer)
    guest.run(None)
    assert guest.exit_status == RESULT
    hits = [(one[0], one[2]) for one in framework.log()]
    order = [name for name in reversed(watched) if name in returning]
    assert hits == [(numbers[name], RESULT) for name in order] * ROUNDS
    if native:
        assert framework.by_python < len(hits)

"""The CPU with which the user's code is compared."""

from emu.isa import ISAS
from trapline.lab.objects.plain_cpu import SCRATCH, SCRATCH_SIZE, PlainCpu, State


def test_the_target_of_a_far_branch_has_32_bits():
    isa = ISAS["i386"]
    place = 0x11_0000
    cpu = PlainCpu(isa, [(place, 16)])
    cpu.write(place, bytes.fromhex("0f8f4ae995a1"))  # jg
    registers = {"eip": place, "esp": SCRATCH + SCRATCH_SIZE // 2, "eflags": 2}
    before = cpu.settled(State(registers, bytes(SCRATCH_SIZE)))
    assert cpu.step(place, before).registers["eip"] == place + 6 + 0xA195E94A

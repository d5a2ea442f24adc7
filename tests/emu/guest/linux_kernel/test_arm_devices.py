"""GICv2, PL011, PSCI and the generic timer, by their data sheets."""

import pytest

from emu.guest.linux_kernel.devices.generic_timer import GenericTimer
from emu.guest.linux_kernel.devices.gicv2 import Gicv2
from emu.guest.linux_kernel.devices.pl011 import Pl011
from emu.guest.linux_kernel.devices.psci import FEATURES, NOT_SUPPORTED, SYSTEM_OFF, SYSTEM_RESET, VERSION, Psci
from tests.emu.guest.linux_kernel.test_devices import OFF, ON, Wire


class TestGicv2:
    def setup_method(self):
        self.line = Wire()
        self.gic = Gicv2(self.line)
        self.interface = self.gic.interface
        self.uart = self.gic.source(33)

    def enable(self, number):
        self.gic.write(0x100 + number // 32 * 4, 4, 1 << number % 32)

    def test_an_interrupt_that_is_not_enabled_is_silent(self):
        self.uart(ON)
        assert not self.line.level
        assert self.gic.read(0x204, 4) == 1 << 1
        assert self.interface.read(0x00C, 4) == 1023

    def test_an_interrupt_is_taken_and_comes_again_while_its_line_is_up(self):
        self.enable(33)
        self.uart(ON)
        assert self.line.level
        assert self.interface.read(0x00C, 4) == 33
        assert not self.line.level
        assert self.gic.read(0x304, 4) == 1 << 1
        self.interface.write(0x010, 4, 33)
        assert self.line.level
        self.uart(OFF)
        assert not self.line.level

    def test_of_two_the_lower_number_goes_first(self):
        self.enable(33)
        self.enable(27)
        self.uart(ON)
        self.gic.source(27)(ON)
        assert [self.interface.read(0x00C, 4) for _ in range(3)] == [27, 33, 1023]

    def test_software_raises_an_interrupt_of_its_own(self):
        self.enable(5)
        self.gic.write(0xF00, 4, 5)
        assert self.interface.read(0x00C, 4) == 5
        self.interface.write(0x010, 4, 5)
        assert not self.line.level

    def test_bits_are_set_and_cleared_by_their_own_registers(self):
        self.enable(33)
        assert self.gic.read(0x184, 4) == 1 << 1
        self.gic.write(0x184, 4, 1 << 1)
        assert self.gic.read(0x104, 4) == 0

    def test_other_registers_are_kept(self):
        self.gic.write(0x420, 4, 0xA0A0A0A0)
        self.interface.write(0x004, 4, 0xF0)
        assert (self.gic.read(0x420, 4), self.interface.read(0x004, 4)) == (0xA0A0A0A0, 0xF0)
        other = Gicv2()
        other.set_state(self.gic.state())
        assert other.interface.read(0x004, 4) == 0xF0


class TestPl011:
    def setup_method(self):
        self.sent = bytearray()
        self.line = Wire()
        self.uart = Pl011(self.sent.extend, self.line)

    def test_a_byte_written_is_sent_and_the_transmitter_interrupts(self):
        self.uart.write(0x038, 4, 0x20)
        self.uart.write(0x000, 4, ord("x"))
        assert bytes(self.sent) == b"x"
        assert self.line.level
        self.uart.write(0x044, 4, 0x20)
        assert not self.line.level

    def test_received_bytes_interrupt_until_the_last_is_read(self):
        self.uart.write(0x038, 4, 0x50)
        self.uart.receive(b"ab")
        assert self.line.level
        assert not self.uart.read(0x018, 4) & 0x10
        assert [self.uart.read(0, 4), self.uart.read(0, 4)] == [ord("a"), ord("b")]
        assert not self.line.level
        assert self.uart.read(0x018, 4) & 0x10

    def test_it_says_which_part_it_is(self):
        assert [self.uart.read(0xFE0 + 4 * n, 4) for n in range(8)] == [0x11, 0x10, 0x24, 0, 0x0D, 0xF0, 0x05, 0xB1]


class TestPsci:
    def setup_method(self):
        self.done = []
        self.psci = Psci(lambda: self.done.append("off"), lambda: self.done.append("reset"))

    def test_the_version_is_1_0(self):
        assert self.psci.call(VERSION, 0) == 0x10000

    @pytest.mark.parametrize(("function", "done"), [(SYSTEM_OFF, "off"), (SYSTEM_RESET, "reset")])
    def test_the_machine_is_switched_off_and_reset(self, function, done):
        assert self.psci.call(FEATURES, function) == 0
        self.psci.call(function | 1 << 63, 0)  # the upper half of x0 means nothing
        assert self.done == [done]

    def test_what_is_not_there_is_not_supported(self):
        assert self.psci.call(0xC4000003, 0) == NOT_SUPPORTED
        assert self.psci.call(FEATURES, 0xC4000003) == NOT_SUPPORTED


class TestGenericTimer:
    def setup_method(self):
        self.time = 100
        self.line = Wire()
        self.timer = GenericTimer(lambda: self.time, self.line)

    def test_a_timer_that_is_off_is_never_due(self):
        self.timer.compare = 150
        assert self.timer.due() is None

    def test_it_goes_off_at_its_time(self):
        self.timer.compare = 150
        self.timer.control = 1
        assert self.timer.due() == 150
        self.time = 150
        assert self.timer.control == 5
        self.timer.update()
        assert self.line.level
        assert self.timer.due() is None

    def test_a_time_that_has_passed_unseen_is_still_due(self):
        self.timer.compare = 150
        self.timer.control = 1
        self.time = 500
        assert self.timer.due() == 150

    def test_masked_it_does_not_interrupt(self):
        self.timer.compare = 50
        self.timer.control = 3
        assert self.timer.control == 7
        assert not self.line.level

    @pytest.mark.parametrize(("value", "compare"), [(25, 125), (0xFFFFFFFF, 99)])
    def test_the_remaining_ticks_have_a_sign(self, value, compare):
        self.timer.remaining = value
        assert self.timer.compare == compare
        assert self.timer.remaining == value

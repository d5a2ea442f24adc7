"""8259A, 8254 and MC146818 of a PC, by their data sheets."""

import pytest

from emu.guest.linux_kernel.devices.i8254 import FREQUENCY, I8254, PORT_B
from emu.guest.linux_kernel.devices.i8259 import I8259Pair
from emu.guest.linux_kernel.devices.mc146818 import Mc146818
from tests.emu.guest.linux_kernel.test_devices import OFF, ON, Wire

SECOND = 1_000_000_000


class TestI8259:
    def setup_method(self):
        self.line = Wire()
        self.pic = I8259Pair(self.line)
        for chip, base in ((0, 0x30), (2, 0x38)):
            for offset, value in ((0, 0x11), (1, base), (1, 4), (1, 1)):
                self.pic.write(chip + offset, 1, value)
            self.pic.write(chip + 1, 1, 0)

    def test_an_interrupt_has_the_vector_of_its_chip(self):
        self.pic.source(4)(ON)
        assert self.line.level
        assert self.pic.acknowledge() == 0x34
        self.pic.source(9)(ON)
        self.pic.write(0, 1, 0x20)
        self.pic.source(4)(OFF)
        assert self.pic.acknowledge() == 0x39

    def test_while_one_is_served_a_lower_one_waits_and_a_higher_one_does_not(self):
        self.pic.source(4)(ON)
        self.pic.acknowledge()
        self.pic.source(5)(ON)
        assert self.pic.pending() is None
        self.pic.pulse(0)
        assert self.pic.acknowledge() == 0x30

    def test_the_end_of_an_interrupt_lets_the_next_one_in(self):
        self.pic.pulse(0)
        self.pic.acknowledge()
        self.pic.pulse(0)
        assert not self.line.level
        self.pic.write(0, 1, 0x60)  # specific: of 0
        assert self.line.level

    def test_masked_ones_wait_and_the_cascade_masks_the_second_chip(self):
        self.pic.write(1, 1, 1 << 2)
        self.pic.source(9)(ON)
        assert not self.line.level
        self.pic.write(1, 1, 0)
        assert self.line.level
        assert (self.pic.read(1, 1), self.pic.read(2, 1)) == (0, 1 << 1)

    def test_what_is_served_can_be_read(self):
        self.pic.pulse(0)
        self.pic.acknowledge()
        self.pic.write(0, 1, 0x0B)
        assert self.pic.read(0, 1) == 1

    def test_nothing_pending_cannot_be_acknowledged(self):
        with pytest.raises(ValueError, match="no interrupt is pending"):
            self.pic.acknowledge()


class TestI8254:
    def setup_method(self):
        self.time = 0
        self.interrupts = 0
        self.pit = I8254(lambda: self.time, self.interrupt, lambda: None)

    def interrupt(self):
        self.interrupts += 1

    def set(self, counter, mode, count):
        self.pit.write(3, 1, counter << 6 | 0x30 | mode << 1)
        self.pit.write(counter, 1, count & 0xFF)
        self.pit.write(counter, 1, count >> 8)

    def test_a_periodic_counter_is_due_again_and_again(self):
        self.set(0, 2, FREQUENCY // 100)
        period = FREQUENCY // 100 * SECOND / FREQUENCY
        for number in range(1, 4):
            assert self.pit.due() == pytest.approx(number * period, abs=2)
            self.time = self.pit.due()
            self.pit.run()
        assert self.interrupts == 3

    def test_periods_that_were_missed_interrupt_once(self):
        self.set(0, 2, 1000)
        self.time = SECOND
        self.pit.run()
        assert self.interrupts == 1
        assert self.pit.due() > SECOND

    def test_a_single_shot_is_due_once(self):
        self.set(0, 4, 1000)
        self.time = self.pit.due()
        self.pit.run()
        assert (self.interrupts, self.pit.due()) == (1, None)

    def test_a_control_word_stops_the_counter(self):
        self.set(0, 2, 1000)
        self.pit.write(3, 1, 0x30)
        assert self.pit.due() is None

    def test_a_count_is_latched_and_read_low_byte_first(self):
        self.set(0, 2, 0x1234)
        self.pit.write(3, 1, 0)
        self.time = SECOND
        assert self.pit.read(0, 1) | self.pit.read(0, 1) << 8 == 0x1234
        assert self.pit.read(0, 1) | self.pit.read(0, 1) << 8 != 0x1234

    def test_port_b_gates_the_second_counter_and_shows_its_output(self):
        self.set(2, 0, 1000)
        self.pit.write(PORT_B, 1, 1)
        assert not self.pit.read(PORT_B, 1) & 0x20
        self.time = SECOND
        assert self.pit.read(PORT_B, 1) & 0x21 == 0x21

    def test_its_state_can_be_kept(self):
        self.set(0, 2, 1000)
        other = I8254(lambda: self.time, self.interrupt, lambda: None)
        other.set_state(self.pit.state())
        assert other.due() == self.pit.due()


def test_the_clock_shows_decimal_digits():
    clock = Mc146818(lambda: 1_700_000_000)  # 2023-11-14 22:13:20, a Tuesday

    def register(number):
        clock.write(0, 1, number)
        return clock.read(1, 1)

    shown = [register(number) for number in (0x32, 9, 8, 7, 6, 4, 2, 0)]
    assert shown == [0x20, 0x23, 0x11, 0x14, 3, 0x22, 0x13, 0x20]
    assert (register(0x0A) >> 7, register(0x0B), register(0x0D)) == (0, 2, 0x80)

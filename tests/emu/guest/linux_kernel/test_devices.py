"""The devices of the machines for Linux kernels, by their data sheets."""

from emu.guest.linux_kernel.devices.ns16550 import Ns16550
from emu.guest.linux_kernel.devices.plic import Plic
from emu.guest.linux_kernel.devices.sbi import BASE, CONSOLE, IPI, RESET, RFENCE, TIME, Sbi

# Levels of a line.
ON, OFF = True, False
NOT_SUPPORTED = (1 << 64) - 2


class Wire:
    """A line that remembers its level."""

    level = False

    def __call__(self, level):
        self.level = level


class TestNs16550:
    def setup_method(self):
        self.sent = bytearray()
        self.line = Wire()
        self.uart = Ns16550(self.sent.extend, self.line)

    def test_a_byte_written_is_sent(self):
        self.uart.write(0, 1, ord("x"))
        assert bytes(self.sent) == b"x"

    def test_the_divisor_is_not_data(self):
        self.uart.write(3, 1, 0x83)
        self.uart.write(0, 1, 0x0C)
        self.uart.write(1, 1, 0x01)
        assert (self.uart.read(0, 1), self.uart.read(1, 1)) == (0x0C, 0x01)
        self.uart.write(3, 1, 3)
        assert not self.sent
        assert self.uart.read(1, 1) == 0

    def test_received_bytes_are_read_in_order_and_lsr_says_so(self):
        self.uart.receive(b"ab")
        assert self.uart.read(5, 1) & 1
        assert [self.uart.read(0, 1), self.uart.read(0, 1)] == [ord("a"), ord("b")]
        assert not self.uart.read(5, 1) & 1
        assert self.uart.read(0, 1) == 0

    def test_an_interrupt_for_received_bytes_lasts_until_they_are_read(self):
        self.uart.receive(b"a")
        assert not self.line.level
        self.uart.write(1, 1, 1)
        assert self.line.level
        assert self.uart.read(2, 1) == 0xC4
        self.uart.read(0, 1)
        assert not self.line.level

    def test_the_empty_transmitter_interrupts_once_until_it_is_empty_again(self):
        self.uart.write(1, 1, 2)
        assert self.line.level
        assert self.uart.read(2, 1) == 0xC2
        assert not self.line.level
        self.uart.write(0, 1, ord("x"))
        assert self.line.level

    def test_on_a_pc_out2_lets_interrupts_out(self):
        uart = Ns16550(self.sent.extend, self.line, gated=True)
        uart.write(1, 1, 2)
        assert not self.line.level
        uart.write(4, 1, 8)
        assert self.line.level

    def test_its_state_can_be_kept(self):
        self.uart.write(1, 1, 1)
        self.uart.receive(b"abc")
        other = Ns16550(self.sent.extend, Wire())
        other.set_state(self.uart.state())
        assert other.read(0, 1) == ord("a")
        assert other.read(1, 1) == 1


class TestPlic:
    def setup_method(self):
        self.line = Wire()
        self.plic = Plic(self.line)
        self.source = self.plic.source(10)
        self.plic.write(4 * 10, 4, 1)

    def test_a_source_that_is_not_enabled_is_silent(self):
        self.source(ON)
        assert not self.line.level
        assert self.plic.read(0x1000, 4) == 1 << 10
        assert self.plic.read(0x200004, 4) == 0

    def test_a_claim_takes_the_source_until_it_is_complete(self):
        self.plic.write(0x2000, 4, 1 << 10)
        self.source(ON)
        assert self.line.level
        assert self.plic.read(0x200004, 4) == 10
        assert not self.line.level
        self.plic.write(0x200004, 4, 10)
        assert self.line.level
        self.source(OFF)
        assert not self.line.level

    def test_priorities_decide_and_the_threshold_masks(self):
        self.plic.source(5)(ON)
        self.plic.write(4 * 5, 4, 2)
        self.plic.write(0x2000, 4, 1 << 10 | 1 << 5)
        self.source(ON)
        self.plic.write(0x200000, 4, 1)
        assert self.plic.read(0x200004, 4) == 5
        assert self.plic.read(0x200004, 4) == 0


class TestSbi:
    def setup_method(self):
        self.sent = bytearray()
        self.done = []
        self.sbi = Sbi(
            send=self.sent.extend,
            read_memory=lambda address, size: b"memory"[address : address + size],
            set_timer=lambda ticks: self.done.append(("timer", ticks)),
            interrupt=lambda: self.done.append("interrupt"),
            reset=lambda kind: self.done.append(("reset", kind)),
        )

    def call(self, extension, function=0, *arguments):
        return self.sbi.call(extension, function, (*arguments, *(0,) * (6 - len(arguments))))

    def test_the_version_is_2_0(self):
        assert self.call(BASE) == (0, 2 << 24)

    def test_probing_tells_which_extensions_there_are(self):
        assert self.call(BASE, 3, TIME) == (0, 1)
        assert self.call(BASE, 3, 0x48534D) == (0, 0)  # hart state management: one hart

    def test_an_extension_that_is_not_there_is_not_supported(self):
        assert self.call(0x48534D) == (NOT_SUPPORTED, 0)

    def test_calls_do_what_they_say(self):
        self.call(TIME, 0, 77)
        self.call(IPI)
        self.call(RFENCE)
        self.call(RESET, 0, 1)
        assert self.done == [("timer", 77), "interrupt", ("reset", 1)]

    def test_the_console_prints_memory(self):
        assert self.call(CONSOLE, 0, 3, 1, 0) == (0, 3)
        assert self.call(CONSOLE, 2, ord("!")) == (0, 0)
        assert bytes(self.sent) == b"emo!"

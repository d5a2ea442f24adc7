"""Small programs in assembly, written once for all ISAs: system calls, stores, calls of code they wrote."""

from __future__ import annotations

from typing import NamedTuple

from emu.assembly import machine_code
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.guest.linux.process.process import LinuxObserver
from emu.isa import ISAS
from tests.emu.guest.linux.elf_program import BASE, elf_program

PAGE = 4096
# Where results are kept, far from the program.
KEPT = 0x60_0000
READ, WRITE, EXECUTE = 1, 2, 4
SHARED, PRIVATE, FIXED, ANONYMOUS = 1, 2, 0x10, 0x20


class Kept(NamedTuple):
    """A result that `Writer.keep` has stored, as an argument of a later call."""

    number: int


class Dialect(NamedTuple):
    """The text of one ISA's instructions."""

    arguments: tuple[str, ...]
    number: str
    result: str
    system_call: str
    other: str
    """A register of no other use."""
    call: str
    barrier: str


DIALECTS = {
    "x86_64": Dialect(("rdi", "rsi", "rdx", "r10", "r8", "r9"), "rax", "rax", "syscall", "rbx", "call rbx", ""),
    "i386": Dialect(("ebx", "ecx", "edx", "esi", "edi", "ebp"), "eax", "eax", "int 0x80", "ebx", "call ebx", ""),
    "aarch64": Dialect(
        ("x0", "x1", "x2", "x3", "x4", "x5"),
        "x8",
        "x0",
        "svc #0",
        "x9",
        "blr x9",
        # dc cvau, dsb ish, ic ivau, dsb ish, isb, with the address in x9
        ".4byte 0xd50b7b29; .4byte 0xd5033b9f; .4byte 0xd50b7529; .4byte 0xd5033b9f; .4byte 0xd5033fdf",
    ),
    "riscv64": Dialect(
        ("a0", "a1", "a2", "a3", "a4", "a5"), "a7", "a0", "ecall", "t0", "jalr ra, 0(t0)", ".4byte 0x0000100f"
    ),
}
# The calls that some ISAs have under another name.
OTHER_NAMES = {
    ("aarch64", "fork"): ("clone", 17, 0, 0, 0, 0),
    ("riscv64", "fork"): ("clone", 17, 0, 0, 0, 0),
    ("i386", "mmap"): ("mmap2",),
}


class Writer:
    """The text of a program while it is written."""

    def __init__(self, isa: str, *, prepared: bool = True) -> None:
        self.isa = ISAS[isa]
        self.name = isa
        self._dialect = DIALECTS[isa]
        self._lines: list[str] = []
        self._expectations = 0
        if prepared:
            self.call("mmap", KEPT, PAGE, READ | WRITE, PRIVATE | ANONYMOUS | FIXED, -1, 0)

    def add(self, text: str) -> None:
        """Add instructions."""
        self._lines.append(text)

    def set(self, register: str, value: int) -> None:
        """Set a register to a number of 32 bits."""
        if self.name == "aarch64":
            value &= 0xFFFF_FFFF_FFFF_FFFF
            self.add(f"movz {register}, #{value & 0xFFFF}")
            for shift in (16, 32, 48):
                if value >> shift & 0xFFFF:
                    self.add(f"movk {register}, #{value >> shift & 0xFFFF}, lsl #{shift}")
        elif self.name == "riscv64":
            low = (value & 0xFFF ^ 0x800) - 0x800
            self.add(f"lui {register}, {(value - low) >> 12 & 0xFFFFF}; addiw {register}, {register}, {low}")
        else:
            self.add(f"mov {register}, {value}")

    def _load(self, register: str, address: int) -> None:
        match self.name:
            case "aarch64":
                self.set("x9", address)
                self.add(f"ldr {register}, [x9]")
            case "riscv64":
                self.set("t0", address)
                self.add(f"ld {register}, 0(t0)")
            case _:
                self.add(f"mov {register}, {address}; mov {register}, [{register}]")

    def store(self, address: int, data: bytes) -> None:
        """Store bytes, four at a time."""
        for at in range(0, len(data), 4):
            value = int.from_bytes(data[at : at + 4].ljust(4, b"\0"), "little")
            match self.name:
                case "aarch64":
                    self.set("x9", address + at)
                    self.set("x10", value)
                    self.add("str w10, [x9]")
                case "riscv64":
                    self.set("t0", address + at)
                    self.set("t1", value)
                    self.add("sw t1, 0(t0)")
                case _:
                    self.set(self._dialect.other, address + at)
                    self.add(f"mov dword ptr [{self._dialect.other}], {value}")

    def call(self, name: str, *arguments: int | Kept) -> None:
        """Make a system call."""
        name, *more = OTHER_NAMES.get((self.name, name), (name,))
        numbers = {known: number for number, known in self.isa.linux.calls.items()}
        arguments = (*more, *arguments)
        for register, argument in reversed([*zip(self._dialect.arguments, arguments, strict=False)]):
            if isinstance(argument, Kept):
                self._load(register, KEPT + 8 * argument.number)
            else:
                self.set(register, argument)
        self.set(self._dialect.number, numbers[name])
        self.add(self._dialect.system_call)

    def keep(self, number: int) -> Kept:
        """Store the latest result."""
        address = KEPT + 8 * number
        match self.name:
            case "aarch64":
                self.set("x9", address)
                self.add("str x0, [x9]")
            case "riscv64":
                self.set("t0", address)
                self.add("sd a0, 0(t0)")
            case _:
                self.set(self._dialect.other, address)
                self.add(f"mov [{self._dialect.other}], {self._dialect.result}")
        return Kept(number)

    def run(self, address: int, argument: int | None = None) -> None:
        """Call code that was written, after the barriers that the ISA asks for.

        The argument is in the register of results.
        """
        if argument is not None:
            self.set(self._dialect.result, argument)
        self.set(self._dialect.other, address)
        if self._dialect.barrier:
            self.add(self._dialect.barrier)
        self.add(self._dialect.call)

    def expect(self, value: int) -> None:
        """End with the number of this expectation if the latest result is another."""
        self._expectations += 1
        label = f"met{self._expectations}"
        match self.name:
            case "aarch64":
                self.set("x9", value)
                self.add(f"cmp x0, x9; b.eq {label}")
            case "riscv64":
                self.set("t0", value)
                self.add(f"beq a0, t0, {label}")
            case _:
                self.add(f"cmp {self._dialect.result}, {value}; je {label}")
        self.call("exit", self._expectations)
        self.add(f"{label}:")

    def in_child(self, write) -> None:
        """Fork; the child does what `write()` writes, and ends with 0; the parent waits for it."""
        self.call("fork")
        label = f"parent{len(self._lines)}"
        match self.name:
            case "aarch64":
                self.add(f"cbnz x0, {label}")
            case "riscv64":
                self.add(f"bnez a0, {label}")
            case _:
                self.add(f"test {self._dialect.result}, {self._dialect.result}; jne {label}")
        write()
        self.call("exit", 0)
        self.add(f"{label}:")
        self.call("wait4", -1, KEPT + 0x100, 0, 0)
        self._load(self._dialect.result, KEPT + 0x100)
        self.expect(0)

    def returning(self, value: int) -> bytes:
        """Return the code of a function that returns a number below 2048."""
        match self.name:
            case "aarch64":
                return (0x52800000 | value << 5).to_bytes(4, "little") + (0xD65F03C0).to_bytes(4, "little")
            case "riscv64":
                return (value << 20 | 0x513).to_bytes(4, "little") + (0x8067).to_bytes(4, "little")
        return b"\xb8" + value.to_bytes(4, "little") + b"\xc3"

    def assembled(self, address: int) -> bytes:
        """Return the machine code for an address."""
        return machine_code(self.isa, "\n".join(self._lines), address)

    def code(self) -> bytes:
        """Return the machine code of the program, which ends with 0."""
        self.call("exit", 0)
        return self.assembled(BASE + PAGE)


class Faults(LinuxObserver):
    """Notes the faults of a program: signal, code, address, pc."""

    def __init__(self, guest) -> None:
        self.noted = []
        self.results = []
        """The register of results at each."""
        self._guest = guest

    def faulted(self, _thread, fault):
        """Note a fault."""
        engine = self._guest.engine
        self.noted.append((fault.number, fault.code, fault.address, engine.pc))
        self.results.append(engine.read_register(DIALECTS[engine.isa.name].result))
        return fault


def run_code(isa, code, folder, **options):
    """Run machine code as a program; return the guest, and what notes its faults."""
    path = folder / "program"
    # Its page is not written to, so nothing but what a test writes is code that changes.
    path.write_bytes(elf_program(isa, bytes(PAGE) + code, writable=False, entry=PAGE))
    path.chmod(0o755)
    guest = LinuxGuest(ISAS[isa], Program(str(path)), standard=Standard(), **options)
    faults = Faults(guest)
    guest.kernel.watch(faults)
    guest.run(guest.now() + 100_000_000)
    return guest, faults

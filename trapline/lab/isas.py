"""What the lab has to know of each ISA; a new ISA needs a row here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# CF PF AF ZF SF OF DF, each set of them with bit 1, which is always set.
_X86_FLAGS: Final = tuple(
    0x2 | bits for bits in (0, 0x1, 0x40, 0x41, 0x80, 0x800, 0x880, 0x8D5, 0x4, 0x10, 0x400, 0x4C1)
)
# Flags that a kernel may have in a state: not those that trap or let interrupts in.
_X86_KERNEL_FLAGS: Final = 0xCD5
_NZCV: Final = 0xF << 28


@dataclass(frozen=True, slots=True)
class LabIsa:
    """Facts of one ISA for `step` and `check`."""

    exception: str
    """What the CPU does at FBT's breakpoint, as a sentence for `step`."""
    flags: tuple[int, ...] = (0,)
    """Values of the flags register that states have."""
    kernel_flags: int = 0
    """Flags that a state may set in a kernel."""
    kernel_registers: frozenset[str] = frozenset()
    """Registers that a kernel's vector relies on: states leave them alone."""
    counter: str = ""
    """The register that a repeated string instruction counts down; "": there are none."""
    rex: bool = False
    """Whether instructions may have a REX prefix."""
    clobbered_by_calls: frozenset[str] = frozenset()
    """Registers in which a system call leaves the address it was made at."""
    bases: tuple[str, ...] = ()
    """Registers beside the general ones that addresses are made from."""
    repeats_unclaimed: bool = False
    """Whether the kernel returns to a breakpoint that its stub does not emulate."""


LAB_ISAS: Final[dict[str, LabIsa]] = {
    "x86_64": LabIsa(
        "#BP, vector 3: a trap, so the saved rip points after the int3.",
        flags=_X86_FLAGS,
        kernel_flags=_X86_KERNEL_FLAGS,
        counter="rcx",
        rex=True,
        clobbered_by_calls=frozenset({"rcx"}),
        bases=("fs_base", "gs_base"),
    ),
    "aarch64": LabIsa(
        "BRK, exception class 0x3c, immediate 0x40d: ELR points at the brk.",
        flags=tuple(number << 28 for number in range(16)),
        kernel_flags=_NZCV,
        kernel_registers=frozenset({"x18"}),
        bases=("tpidr_el0",),
        # The kernel does not look at the stub's answer (FreeBSD sys/arm64/arm64/trap.c).
        repeats_unclaimed=True,
    ),
    "riscv64": LabIsa(
        "breakpoint, scause 3: sepc points at the ebreak.",
        kernel_registers=frozenset({"tp", "gp"}),
    ),
    "i386": LabIsa(
        "#UD, vector 6: LOCK before an instruction that it cannot lock is a fault, so the saved eip points at it.",
        flags=_X86_FLAGS,
        kernel_flags=_X86_KERNEL_FLAGS,
        counter="ecx",
        bases=("fs_base", "gs_base"),
    ),
}

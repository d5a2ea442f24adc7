"""The delivery of exceptions and interrupts on x86, by public calls."""

from __future__ import annotations

from emu.isa.unicorn_model import PublicCpu
from emu.isa.x86.public import Mode


def deliver(cpu: PublicCpu, number: int, mode: Mode) -> None:
    """Deliver an exception to the guest's own vector."""
    raise RuntimeError(f"the teaching kernel does not run in portable mode: {(cpu, number, mode)}")


def interrupt(cpu: PublicCpu, mode: Mode) -> None:
    """Deliver the clock interrupt."""
    raise RuntimeError(f"the teaching kernel does not run in portable mode: {(cpu, mode)}")


def system_call(cpu: PublicCpu, mode: Mode) -> None:
    """Do what SYSCALL does."""
    raise RuntimeError(f"the teaching kernel does not run in portable mode: {(cpu, mode)}")

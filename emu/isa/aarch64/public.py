"""AArch64 in portable mode."""

from __future__ import annotations

from typing import Final

from emu.isa.unicorn_model import PublicCpu, PublicModel


def _deliver(cpu: PublicCpu, number: int) -> None:
    raise RuntimeError(f"the teaching kernel does not run in portable mode: {(cpu, number)}")


def _interrupt(cpu: PublicCpu) -> None:
    raise RuntimeError(f"the teaching kernel does not run in portable mode: {cpu}")


PUBLIC: Final = PublicModel(deliver=_deliver, interrupt=_interrupt)

"""The modules that draw instructions and states, by ISA."""

from __future__ import annotations

from typing import Final

from tests.fuzz.judge import words, x86

ENCODERS: Final = {"x86_64": x86, "i386": x86, "aarch64": words, "riscv64": words}

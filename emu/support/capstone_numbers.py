"""Capstone's numbers of architectures, modes and kinds (capstone.h: cs_arch, cs_mode and others).

They are here because capstone's own module takes longer to import than all ISAs together, and is
needed only when something is disassembled.  A test compares them with capstone's.
"""

from __future__ import annotations

from typing import Final

CS_ARCH_ARM64: Final = 1
CS_ARCH_X86: Final = 3
CS_ARCH_RISCV: Final = 15
CS_MODE_ARM: Final = 0
CS_MODE_32: Final = 1 << 2
CS_MODE_64: Final = 1 << 3
CS_MODE_RISCV64: Final = 1 << 1
CS_MODE_RISCVC: Final = 1 << 2
CS_OP_MEM: Final = 3
CS_OP_REG: Final = 1
CS_GRP_JUMP: Final = 1
CS_GRP_CALL: Final = 2
CS_GRP_RET: Final = 3

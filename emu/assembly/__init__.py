"""The assembler: text in, machine code out, each instruction checked by disassembling it.

    for one in assemble(isa, "push rbp; mov rbp, rsp", address=0x1000):
        print(one.code.hex(), one.text)

Keystone assembles x86 and most of AArch64, if it is installed; tables of ours assemble RISC-V, and
what keystone lacks or encodes wrongly (`emu/isa/<isa>/assembly.py`), and llvm-mc or GNU as, where
they are installed, what both lack.  Statements are separated by
semicolons and ends of lines.  There are labels (`again: ... jne again`), and .byte, .2byte, .4byte,
.8byte and .inst put bytes.
"""

from __future__ import annotations

from emu.assembly.assembler import Assembled, assemble, machine_code
from emu.assembly.statements import AssemblyError

__all__ = ["Assembled", "AssemblyError", "assemble", "machine_code"]

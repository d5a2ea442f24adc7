"""The extensions that the emulated CPU, a Cortex-A57 or A72, lacks.

Source: the Arm Architecture Reference Manual, C4 (A64 instruction set encoding).
"""

from __future__ import annotations

from typing import Final

from emu.isa.extensions import Extension

LACKS: Final = (
    Extension("LRCPC", 0x3FFFFC00, 0x38BFC000),
    Extension("LRCPC2", 0x3F200C00, 0x19000000),
    Extension("LSE", 0x3F200C00, 0x38200000),  # ldadd and the like, swp
    Extension("LSE", 0x3FA07C00, 0x08A07C00),  # cas
    Extension("LSE", 0xBFA07C00, 0x08207C00),  # casp
    Extension("PAuth", 0xFFFF0000, 0xDAC10000),  # pacia and the like; those among the hints are nops
    Extension("PAuth", 0xFE9FF800, 0xD61F0800),  # braa, blraa, retaa
    Extension("PAuth", 0xFF200400, 0xF8200400),  # ldraa
    Extension("PAuth", 0xFFE0FC00, 0x9AC03000),  # pacga
    Extension("RDM", 0xBF20F400, 0x2E008400),
    Extension("RDM", 0xFF20F400, 0x7E008400),
    Extension("DotProd", 0x9F20FC00, 0x0E009400),
    Extension("DotProd", 0x9F00F400, 0x0F00E000),  # by an element
    Extension("FCMA", 0xBF20E400, 0x2E00C400),
    Extension("FCMA", 0xBF20EC00, 0x2E00E400),
    Extension("I8MM", 0xFFA0F400, 0x4E80A400),
    Extension("BF16", 0xBF60FC00, 0x2E40FC00),
    Extension("FP16", 0x9F60C400, 0x0E400400),
    Extension("FP16", 0xFFE00000, 0x1EE00000),
    Extension("JSCVT", 0xFFFFFC00, 0x1E7E0000),
    Extension("FRINTTS", 0xFFBE7C00, 0x1E284000),
    Extension("FlagM", 0xFFFFFFFF, 0xD500401F),  # cfinv
    Extension("FlagM", 0xFFE07C10, 0xBA000400),  # rmif
    Extension("FlagM", 0xFFFFBC1F, 0x3A00080D),  # setf8, setf16
    Extension("SHA512, SHA3, SM3 or SM4", 0xFF000000, 0xCE000000),
    Extension("MTE", 0xFFE0FC00, 0x9AC01000),  # irg
    Extension("MTE", 0xBFC0C000, 0x91800000),  # addg, subg
    Extension("MTE", 0xFF200000, 0xD9200000),  # stg, ldg
    Extension("MOPS", 0x3B200C00, 0x19000400),
    Extension("CSSC", 0x7FFFF000, 0x5AC02000),  # abs
    Extension("CSSC", 0x7FFFF800, 0x5AC01800),  # ctz, cnt
    Extension("CSSC", 0x7FF00000, 0x11C00000),  # smax, umin and the like
    Extension("SVE", 0x1E000000, 0x04000000),
    Extension("SME", 0x9E000000, 0x80000000),
    Extension("SME", 0xFFFFF0FF, 0xD503407F),  # smstart, smstop
)

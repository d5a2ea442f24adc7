"""The extensions that the emulated CPU, an x86-64-v2 with BMI, AES and movbe, lacks.

Source: Intel SDM volume 2, appendix A; `emu.isa.x86.cpuid` has what it announces.
"""

from __future__ import annotations

import re
from typing import Final

from emu.isa.extensions import Extension

_PREFIXES: Final = rb"[\x26\x2e\x36\x3e\x64-\x67\xf0\xf2\xf3]*"
_LEGACY: Final = _PREFIXES + rb"[\x40-\x4f]?\x0f"


def _after(start: bytes, opcode: bytes) -> re.Pattern[bytes]:
    return re.compile(start + opcode, re.DOTALL)


LACKS: Final = (
    Extension("AVX-512", pattern=_after(_PREFIXES, rb"\x62")),
    # FMA is map 2 from 96 to BF; AVX2's integers cannot be told from AVX's without the vector length.
    Extension("FMA", pattern=_after(_PREFIXES, rb"\xc4[\x02\x22\x42\x62\x82\xa2\xc2\xe2].[\x96-\xbf]")),
    Extension("AVX or AVX2", pattern=_after(_PREFIXES, rb"[\xc4\xc5]")),
    Extension("XOP", pattern=_after(_PREFIXES, rb"\x8f")),
    Extension("SHA", pattern=_after(_LEGACY, rb"(?:\x38[\xc8-\xcd]|\x3a\xcc)")),
    Extension("ADX", pattern=_after(_LEGACY, rb"\x38\xf6")),
    Extension("GFNI", pattern=_after(_LEGACY, rb"(?:\x38\xcf|\x3a[\xce\xcf])")),
    Extension("MOVDIRI", pattern=_after(_LEGACY, rb"\x38[\xf8\xf9]")),
    Extension("RDPID", pattern=_after(_LEGACY, rb"\xc7[\xf8-\xff]")),
    Extension("SSE4a", pattern=_after(_LEGACY, rb"[\x2b\x78\x79]")),
    Extension("CET", pattern=_after(_LEGACY, rb"(?:\x01[\xe8-\xef]|\x38[\xf5\xf6]|\x1e)")),
)

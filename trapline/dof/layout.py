"""The structures of DOF: a header, a table of sections, and what each kind of section holds.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h (dof_hdr_t and what follows
it).
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final, NamedTuple

MAGIC: Final = b"\x7fDOF"
LITTLE: Final = 1
VERSION: Final = 2
DIF_VERSION: Final = 2
REGISTERS: Final = 8
# Index of no section, offset of no string.
NONE: Final = 0xFFFF_FFFF
# Flag of a section that the framework is to look at.
LOAD: Final = 1
# dtrace_dof_maxsize.
MAX_SIZE: Final = 256 * 1024


class SectionType(IntEnum):
    """What a section holds (DOF_SECT_*)."""

    NONE = 0
    COMMENTS = 1
    SOURCE = 2
    ECBDESC = 3
    PROBEDESC = 4
    ACTDESC = 5
    DIFOHDR = 6
    DIF = 7
    STRTAB = 8
    VARTAB = 9
    RELTAB = 10
    TYPTAB = 11
    URELHDR = 12
    KRELHDR = 13
    OPTDESC = 14
    PROVIDER = 15
    PROBES = 16
    PRARGS = 17
    PROFFS = 18
    INTTAB = 19
    UTSNAME = 20
    XLTAB = 21
    XLMEMBERS = 22
    XLIMPORT = 23
    XLEXPORT = 24
    PREXPORT = 25
    PRENOFFS = 26


NOT_LOADED: Final = frozenset({SectionType.COMMENTS, SectionType.SOURCE, SectionType.UTSNAME})
# What programs that define probes have, and those that enable them must not.
OF_PROVIDERS: Final = frozenset(
    {SectionType.PROVIDER, SectionType.PROBES, SectionType.PRARGS, SectionType.PROFFS, SectionType.PRENOFFS}
)


class Form(NamedTuple):
    """What a section's header must say: bytes of an entry, and alignment."""

    entry: int
    alignment: int


FORMS: Final = {
    SectionType.ECBDESC: Form(0, 8),
    SectionType.PROBEDESC: Form(0, 4),
    SectionType.ACTDESC: Form(32, 8),
    SectionType.DIFOHDR: Form(0, 4),
    SectionType.DIF: Form(4, 4),
    SectionType.STRTAB: Form(0, 1),
    SectionType.VARTAB: Form(20, 4),
    SectionType.OPTDESC: Form(16, 8),
    SectionType.INTTAB: Form(8, 8),
    SectionType.COMMENTS: Form(0, 1),
}

# ident, flags, hdrsize, secsize, secnum, secoff, loadsz, filesz, pad.
HEADER: Final = struct.Struct("<16sIIIIQQQQ")
# type, align, flags, entsize, offset, size.
SECTION: Final = struct.Struct("<IIIIQQ")
# probes, pred, actions, pad, uarg.
ECB: Final = struct.Struct("<IIIIQ")
# strtab, provider, mod, func, name, id.
PROBE: Final = struct.Struct("<IIIIII")
# difo, strtab, kind, ntuple, arg, uarg.
ACTION: Final = struct.Struct("<IIIIQQ")
# kind, ckind, flags, size.
TYPE: Final = struct.Struct("<BBBxI")
# name, id, kind, scope, flags, and the type.
VARIABLE: Final = struct.Struct("<IIBBHBBBxI")
# option, strtab, value.
OPTION: Final = struct.Struct("<IIQ")
# strtab, relsec, tgtsec.
RELOCATION: Final = struct.Struct("<III")
LINK: Final = struct.Struct("<I")

# Options by their number (DTRACEOPT_*).
OPTIONS: Final = tuple(
    """
    bufsize bufpolicy dynvarsize aggsize specsize nspec strsize cleanrate cpu bufresize grabanon flowindent quiet
    stackframes ustackframes aggrate switchrate statusrate destructive stackindent rawbytes jstackframes jstackstrsize
    aggsortkey aggsortrev aggsortpos aggsortkeypos temporal agghist aggpack aggzoom zone
    """.split()
)

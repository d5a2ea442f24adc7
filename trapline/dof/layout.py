"""The layout of the sections of a program for the framework.

`providers.dof.layout` has the structures that all DOF has.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h (dof_hdr_t and what follows
it).
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from providers.dof.layout import SectionType

# Index of no section, offset of no string.
NONE: Final = 0xFFFF_FFFF


class Form(NamedTuple):
    """The required header of a section: the size of an entry, and the alignment."""

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

# Options by their number (DTRACEOPT_*).
OPTIONS: Final = tuple(
    """
    bufsize bufpolicy dynvarsize aggsize specsize nspec strsize cleanrate cpu bufresize grabanon flowindent quiet
    stackframes ustackframes aggrate switchrate statusrate destructive stackindent rawbytes jstackframes jstackstrsize
    aggsortkey aggsortrev aggsortpos aggsortkeypos temporal agghist aggpack aggzoom zone
    """.split()
)

"""The structures that all DOF has: a header, and a table of sections.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/sys/dtrace.h (dof_hdr_t and what follows
it).
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

MAGIC: Final = b"\x7fDOF"
LITTLE: Final = 1
VERSION: Final = 2
DIF_VERSION: Final = 2
REGISTERS: Final = 8
# Flag of a section that the framework must load.
LOAD: Final = 1
# dtrace_dof_maxsize.
MAX_SIZE: Final = 256 * 1024


class SectionType(IntEnum):
    """The type of a section (DOF_SECT_*)."""

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
# The sections of programs that define probes; programs that enable probes must not have them.
OF_PROVIDERS: Final = frozenset(
    {SectionType.PROVIDER, SectionType.PROBES, SectionType.PRARGS, SectionType.PROFFS, SectionType.PRENOFFS}
)


# ident, flags, hdrsize, secsize, secnum, secoff, loadsz, filesz, pad.
HEADER: Final = struct.Struct("<16sIIIIQQQQ")
# type, align, flags, entsize, offset, size.
SECTION: Final = struct.Struct("<IIIIQQ")
# strtab, relsec, tgtsec.
RELOCATIONS: Final = struct.Struct("<III")
# name, type, offset, data.
RELOCATION: Final = struct.Struct("<IIQQ")
# A section's number.
LINK: Final = struct.Struct("<I")

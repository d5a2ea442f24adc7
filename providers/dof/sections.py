"""The sections of DOF, with every check that the kernel makes.

Programs for the framework and the probes of user programs use the same container, and the kernel
reads both with one function.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/dtrace/dtrace.c (dtrace_dof_slurp).
"""

from __future__ import annotations

from typing import Final, NamedTuple, NoReturn

from providers.dof.layout import (
    DIF_VERSION,
    HEADER,
    LITTLE,
    LOAD,
    MAGIC,
    MAX_SIZE,
    NOT_LOADED,
    OF_PROVIDERS,
    REGISTERS,
    RELOCATION,
    RELOCATIONS,
    SECTION,
    VERSION,
    SectionType,
)

# The data models, ILP32 and LP64 (DOF_MODEL_*).
MODELS: Final = frozenset({1, 2})


class DofError(Exception):
    """DOF that is refused; `errno_name` is what the ioctl returns."""

    def __init__(self, message: str, errno_name: str = "EINVAL") -> None:
        super().__init__(message)
        self.errno_name = errno_name


class DofSection(NamedTuple):
    """A section's header."""

    number: int
    type: int
    alignment: int
    flags: int
    entry: int
    offset: int
    size: int

    def bad(self, why: str) -> NoReturn:
        """Raise the `DofError` of this section."""
        raise DofError(f"section {self.number}: {why}")


class DofRelocations(NamedTuple):
    """A section of relocation headers: the relocations, and the section they change."""

    table: DofSection
    target: DofSection


def load_size(header: bytes, max_size: int = MAX_SIZE) -> int:
    """Return the size of DOF in bytes, from its header.  Raises `DofError`."""
    if len(header) < HEADER.size:
        raise DofError("corrupt DOF header: it is not whole")
    ident, _flags, _hdrsize, _secsize, _secnum, _secoff, loadsz, _filesz, _pad = HEADER.unpack_from(header)
    if ident[:4] != MAGIC:
        raise DofError("DOF magic string mismatch")
    if loadsz >= max_size:
        raise DofError(f"load size {loadsz:#x} exceeds the maximum of {max_size:#x}", "E2BIG")
    if loadsz < HEADER.size:
        raise DofError("corrupt DOF header: the load size is not that of the data")
    return int(loadsz)


class DofSections:
    """The sections of one piece of DOF. Every access outside it raises `DofError`.

    `defines_probes` says whether it may have sections of providers: those of user programs do,
    programs that enable probes must not.
    """

    def __init__(self, data: bytes, *, defines_probes: bool, max_size: int = MAX_SIZE) -> None:
        size = load_size(data, max_size)
        if size > len(data):
            raise DofError("corrupt DOF header: the load size is not that of the data")
        self.data = data[:size]
        self._defines_probes = defines_probes
        ident, flags, _hdrsize, secsize, secnum, secoff, *_ = HEADER.unpack_from(data)
        _check_ident(ident)
        self.model: int = ident[4]
        if flags:
            raise DofError(f"invalid DOF flags {flags:#x}")
        if not secsize:
            raise DofError("zero section header size")
        if secoff & 7 or secoff > size or secsize & 7 or secoff + secsize * secnum > size:
            raise DofError("section headers are misaligned or beyond the end")
        if secsize < SECTION.size and secnum:
            raise DofError("section headers are too short")
        self.all = tuple(
            DofSection(number, *SECTION.unpack_from(data, secoff + number * secsize)) for number in range(secnum)
        )
        for section in self.all:
            self._check(section)

    def _check(self, section: DofSection) -> None:
        if section.type in OF_PROVIDERS and not self._defines_probes:
            section.bad("a program that enables probes cannot define any")
        if section.type in {*SectionType} - NOT_LOADED - {SectionType.NONE} and not section.flags & LOAD:
            section.bad("its kind is loadable, but its flags say otherwise")
        if not section.flags & LOAD:
            return
        if not section.alignment or section.alignment & (section.alignment - 1):
            section.bad(f"an alignment of {section.alignment}")
        if section.offset & (section.alignment - 1):
            section.bad(f"it is not aligned by {section.alignment}")
        if section.offset + section.size > len(self.data):
            section.bad("it ends beyond what is loaded")
        if section.type == SectionType.STRTAB and (not section.size or self.bytes_of(section)[-1]):
            section.bad("a string table that ends without a NUL")

    def of_type(self, type_: SectionType) -> tuple[DofSection, ...]:
        """Return the loaded sections of a type."""
        return tuple(one for one in self.all if one.flags & LOAD and one.type == type_)

    def bytes_of(self, section: DofSection) -> bytes:
        """Return the content of a section."""
        return self.data[section.offset : section.offset + section.size]

    def named(self, index: int, user: DofSection, *types: SectionType) -> DofSection:
        """Return a section that another one names, of one of the given types; none: of any type."""
        if index >= len(self.all):
            user.bad(f"it names section {index}, of {len(self.all)}")
        found = self.all[index]
        if not found.flags & LOAD:
            user.bad(f"it names section {index}, which is not loaded")
        if types and found.type not in types:
            user.bad(f"it names section {index}, which is not a {types[0].name}")
        return found

    def string(self, table: DofSection, offset: int, user: DofSection) -> str:
        """Return the string at an offset of a string table."""
        if offset >= table.size:
            user.bad(f"a string at {offset:#x} of {table.size:#x}")
        start = table.offset + offset
        return self.data[start : self.data.index(0, start)].decode("utf-8", "surrogateescape")

    def relocations(self) -> tuple[DofRelocations, ...]:
        """Return the user relocations (dtrace_dof_relocate)."""
        return tuple(map(self._relocations, self.of_type(SectionType.URELHDR)))

    def _relocations(self, section: DofSection) -> DofRelocations:
        if section.size < RELOCATIONS.size or section.alignment != 4:
            section.bad("invalid relocation header")
        strings, table, target = RELOCATIONS.unpack_from(self.data, section.offset)
        self.named(strings, section, SectionType.STRTAB)
        found = DofRelocations(self.named(table, section, SectionType.RELTAB), self.named(target, section))
        if found.table.entry < RELOCATION.size or found.table.alignment != 8:
            section.bad("invalid relocations")
        return found


def _check_ident(ident: bytes) -> None:
    checks = (
        (ident[4] in MODELS, "DOF has an invalid data model"),
        (ident[5] == LITTLE, "DOF encoding mismatch"),
        (ident[6] in {1, VERSION}, "DOF version mismatch"),
        (ident[7] == DIF_VERSION, "DOF uses an unsupported instruction set"),
        (ident[8] <= REGISTERS, "DOF uses too many integer registers"),
        (ident[9] <= REGISTERS, "DOF uses too many tuple registers"),
        (not any(ident[10:]), "DOF has invalid ident bytes set"),
    )
    for good, message in checks:
        if not good:
            raise DofError(message)

"""A kernel's description of its probes: the linker sets of SDT.

They are filled by the macros of sys/sdt.h, and read from its memory.

Source: FreeBSD sys/sys/sdt.h, sys/cddl/dev/sdt/sdt.c (sdt_load_probes_cb); the structures are the
teaching kernel's (testbins/kernel/sys/sdt.h), whose probes contain their size as FreeBSD's do.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from emu.support.immutable import immutable

PROVIDERS: Final = "set_sdt_providers_set"
PROBES: Final = "set_sdt_probes_set"
ARGTYPES: Final = "set_sdt_argtypes_set"
TRACEPOINTS: Final = "set_sdt_tracepoint_set"


class _Layout(NamedTuple):
    """The structures of one data model."""

    pointer: struct.Struct
    probe: struct.Struct
    """struct sdt_probe: version, id, provider, module, function, name, number of arguments."""
    argtype: struct.Struct
    """struct sdt_argtype: index, native type, translated type, probe."""
    tracepoint: struct.Struct
    """struct sdt_tracepoint: probe, patch point, target."""


# By the size of a pointer; numbers that are not pointers have the same width in both.
_LAYOUTS: Final = {
    8: _Layout(struct.Struct("<Q"), struct.Struct("<iI5Q"), struct.Struct("<4Q"), struct.Struct("<3Q")),
    4: _Layout(struct.Struct("<I"), struct.Struct("<iI4IQ"), struct.Struct("<Q3I"), struct.Struct("<3I")),
}
_STRING_MAX: Final = 256
# The offset of the id in struct sdt_probe, a uint32_t.
ID_OFFSET: Final = 4

Read = Callable[[int, int], bytes]
# Name of a linker set -> its address and size, None if the kernel has no such set.
FindSet = Callable[[str], tuple[int, int] | None]


@immutable
class ArgumentType:
    """The type of one argument; "" if it is not given."""

    native: str
    translated: str


class Tracepoint(NamedTuple):
    """A site that enabling patches: the nop at `address` becomes a jump to `target`."""

    address: int
    target: int


@immutable
class Declaration:
    """A probe as the kernel declares it."""

    address: int
    """Address of its struct sdt_probe."""
    provider: str
    module: str
    function: str
    name: str
    """The name in the source: "__" is not yet "-"."""
    arguments: tuple[ArgumentType | None, ...]
    """None: an index below the number of arguments for which no type was declared."""
    tracepoints: tuple[Tracepoint, ...]


@immutable
class Declarations:
    """All declarations of a kernel."""

    providers: tuple[str, ...]
    probes: tuple[Declaration, ...]
    refused: tuple[str, ...]
    """Why probes were left out, a line each."""


def read_declarations(find: FindSet, read: Read, word: int = 8) -> Declarations:
    """Read the linker sets; one that is missing is empty.

    Raises `emu.support.words.BadAddressError`.
    """
    layout = _LAYOUTS[word]
    names = {
        address: _string(read, _pointer(read, address, layout)) for address in _pointers(find, PROVIDERS, read, layout)
    }
    types: dict[int, dict[int, ArgumentType]] = {}
    for address in _pointers(find, ARGTYPES, read, layout):
        index, native, translated, probe = layout.argtype.unpack(read(address, layout.argtype.size))
        types.setdefault(probe, {})[index] = ArgumentType(_string(read, native), _string(read, translated))
    sites: dict[int, list[Tracepoint]] = {}
    for probe, patchpoint, target in _structures(find, TRACEPOINTS, read, layout.tracepoint):
        sites.setdefault(probe, []).append(Tracepoint(patchpoint, target))
    probes, refused = [], []
    for address in _pointers(find, PROBES, read, layout):
        version, _, provider, module, function, name, count = layout.probe.unpack(read(address, layout.probe.size))
        if version != layout.probe.size:
            refused.append(
                f"the SDT probe at {address:#x} is of version {version}, not {layout.probe.size}: build kernel and "
                "provider from one source"
            )
            continue
        declared = types.get(address, {})
        probes.append(
            Declaration(
                address=address,
                provider=names[provider],
                module=_string(read, module),
                function=_string(read, function),
                name=_string(read, name),
                arguments=tuple(declared.get(index) for index in range(count)),
                tracepoints=tuple(sites.get(address, ())),
            )
        )
    return Declarations(tuple(names.values()), tuple(probes), tuple(refused))


def _pointers(find: FindSet, name: str, read: Read, layout: _Layout) -> Iterator[int]:
    return (pointer for (pointer,) in _structures(find, name, read, layout.pointer))


def _structures(find: FindSet, name: str, read: Read, entry: struct.Struct) -> Iterator[tuple[int, ...]]:
    extent = find(name)
    return entry.iter_unpack(read(*extent)) if extent is not None else iter(())


def _pointer(read: Read, address: int, layout: _Layout) -> int:
    (value,) = layout.pointer.unpack(read(address, layout.pointer.size))
    return int(value)


def _string(read: Read, address: int) -> str:
    """Return a string of the kernel, "" for NULL."""
    if not address:
        return ""
    return read(address, _STRING_MAX).split(b"\0", 1)[0].decode("utf-8", "replace")

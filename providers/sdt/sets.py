"""What a kernel says of its probes: the linker sets that the macros of sys/sdt.h fill, read from its memory.

Source: FreeBSD sys/sys/sdt.h, sys/cddl/dev/sdt/sdt.c (sdt_load_probes_cb); the structures are the teaching kernel's
(testbins/kernel/sys/sdt.h), whose probes tell their size as FreeBSD's do.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

PROVIDERS: Final = "set_sdt_providers_set"
PROBES: Final = "set_sdt_probes_set"
ARGTYPES: Final = "set_sdt_argtypes_set"
TRACEPOINTS: Final = "set_sdt_tracepoint_set"

_POINTER: Final = struct.Struct("<Q")
_PROBE: Final = struct.Struct("<iI5Q")
"""struct sdt_probe: version, id, provider, module, function, name, number of arguments."""
_ARGTYPE: Final = struct.Struct("<4Q")
"""struct sdt_argtype: index, native type, translated type, probe."""
_TRACEPOINT: Final = struct.Struct("<3Q")
"""struct sdt_tracepoint: probe, patch point, target."""
_STRING_MAX: Final = 256
ID_OFFSET: Final = 4
"""Where struct sdt_probe has its id, a uint32_t."""

Read = Callable[[int, int], bytes]
FindSet = Callable[[str], tuple[int, int] | None]
"""Name of a linker set -> its address and size, None if the kernel has none of that name."""


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """The type of one argument; "" where it is not told."""

    native: str
    translated: str


class Tracepoint(NamedTuple):
    """A site that enabling patches: the nop at `address` becomes a jump to `target`."""

    address: int
    target: int


@dataclass(frozen=True, slots=True)
class Declaration:
    """A probe as the kernel declares it."""

    address: int
    """Of its struct sdt_probe."""
    provider: str
    module: str
    function: str
    name: str
    """As written: "__" is not yet "-"."""
    arguments: tuple[ArgumentType | None, ...]
    """None: an index below the number of arguments for which no type was declared."""
    tracepoints: tuple[Tracepoint, ...]


@dataclass(frozen=True, slots=True)
class Declarations:
    """All a kernel declares."""

    providers: tuple[str, ...]
    probes: tuple[Declaration, ...]
    refused: tuple[str, ...]
    """Why probes were left out, a line each."""


def read_declarations(find: FindSet, read: Read) -> Declarations:
    """Read the linker sets; one that is missing is empty.  Raises `emu.guest.base.BadAddressError`."""
    names = {address: _string(read, _word(read, address)) for address in _pointers(find, PROVIDERS, read)}
    types: dict[int, dict[int, ArgumentType]] = {}
    for address in _pointers(find, ARGTYPES, read):
        index, native, translated, probe = _ARGTYPE.unpack(read(address, _ARGTYPE.size))
        types.setdefault(probe, {})[index] = ArgumentType(_string(read, native), _string(read, translated))
    sites: dict[int, list[Tracepoint]] = {}
    for probe, patchpoint, target in _structures(find, TRACEPOINTS, read, _TRACEPOINT):
        sites.setdefault(probe, []).append(Tracepoint(patchpoint, target))
    probes, refused = [], []
    for address in _pointers(find, PROBES, read):
        version, _, provider, module, function, name, count = _PROBE.unpack(read(address, _PROBE.size))
        if version != _PROBE.size:
            refused.append(
                f"the SDT probe at {address:#x} is of version {version}, not {_PROBE.size}: build kernel and provider "
                "from one source"
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


def _pointers(find: FindSet, name: str, read: Read) -> Iterator[int]:
    return (pointer for (pointer,) in _structures(find, name, read, _POINTER))


def _structures(find: FindSet, name: str, read: Read, entry: struct.Struct) -> Iterator[tuple[int, ...]]:
    extent = find(name)
    return entry.iter_unpack(read(*extent)) if extent is not None else iter(())


def _word(read: Read, address: int) -> int:
    (value,) = _POINTER.unpack(read(address, _POINTER.size))
    return int(value)


def _string(read: Read, address: int) -> str:
    """Return a string of the kernel's, "" for NULL."""
    if not address:
        return ""
    return read(address, _STRING_MAX).split(b"\0", 1)[0].decode("utf-8", "replace")

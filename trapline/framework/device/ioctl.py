"""/dev/dtrace/dtrace: requests as commands and bytes, answered by one consumer's state.

A request's argument is the complete structure, as it is in the caller's memory: if the real request
has a pointer, it is the data there.  Data of variable size follow the structure: DOF, a buffer's
content, a format's text.

Source: FreeBSD sys/cddl/dev/dtrace/dtrace_ioctl.c.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Final

from providers.dof.layout import DIF_VERSION, REGISTERS
from trapline.framework.base.device import Answer, DeviceError
from trapline.framework.base.program import DataModel
from trapline.framework.device import structures
from trapline.framework.device.state import ConsumerState
from trapline.framework.device.structures import REQUESTS, Request

# Alignment of the entries in a snapshot of an aggregation buffer.
_ALIGNMENT: Final = 8


class OpenDevice(ConsumerState):
    """/dev/dtrace/dtrace as one consumer has it open: its state, which requests reach."""

    def ioctl(self, command: int, buffer: bytes) -> Answer:
        """Answer a request.

        ENOTTY: the command is unknown; EFAULT: the buffer is too short for its structure.
        """
        request = REQUESTS.get(command)
        if request is None:
            return Answer(errno.ENOTTY, complaint=f"no request {command:#010x}")
        if len(buffer) < request.size:
            return Answer(errno.EFAULT, complaint=f"DTRACEIOC_{request.name} carries {request.size} bytes")
        try:
            return Answer(0, _TABLE[request](self, buffer))
        except DeviceError as error:
            return Answer(getattr(errno, error.errno_name), complaint=str(error))


def _provider(state: ConsumerState, buffer: bytes) -> bytes:
    name = structures.provider_name(buffer)
    provider = state.search.provider(name)
    return structures.pack_provider(name, provider.attributes, provider.privilege)


def _probes(state: ConsumerState, buffer: bytes) -> bytes:
    """Return the first probe with a number of at least the one given."""
    number, _pattern = structures.unpack_probe(buffer)
    found = state.search.next_probe(None, number)
    return structures.pack_probe(found.description, found.id)


def _probematch(state: ConsumerState, buffer: bytes) -> bytes:
    number, pattern = structures.unpack_probe(buffer)
    found = state.search.next_probe(pattern, number)
    return structures.pack_probe(found.description, found.id)


def _probearg(state: ConsumerState, buffer: bytes) -> bytes:
    probe, index = structures.argument_asked(buffer)
    found = state.search.probe_argument(probe, index)
    return structures.pack_argument(probe, structures.NO_ARGUMENT if found is None else index, found)


def _enable(state: ConsumerState, buffer: bytes) -> bytes:
    """Enable the DOF that follows the structure."""
    matched = sum(state.enable(buffer[structures.ENABLE.size :]))
    return structures.ENABLE.pack(0, matched, 0)


def _eprobe(state: ConsumerState, buffer: bytes) -> bytes:
    epid, *_ = structures.ENABLED.unpack_from(buffer)
    return structures.pack_enabled(state.enabled_probe(epid), structures.records_wanted(buffer, structures.ENABLED))


def _aggdesc(state: ConsumerState, buffer: bytes) -> bytes:
    number = structures.AGGREGATION.unpack_from(buffer)[3]
    room = structures.records_wanted(buffer, structures.AGGREGATION)
    return structures.pack_aggregation(state.aggregation(number), room)


def _bufsnap(state: ConsumerState, buffer: bytes) -> bytes:
    _size, cpu, *_ = structures.BUFFER.unpack_from(buffer)
    found = state.buffer_snapshot(cpu)
    head = structures.BUFFER.pack(len(found.data), cpu, found.errors, found.drops, 0, 0, found.timestamp)
    return head + found.data


def _aggsnap(state: ConsumerState, buffer: bytes) -> bytes:
    """Return the entries of an aggregation buffer in its layout, at multiples of 8 bytes."""
    _size, cpu, *_ = structures.BUFFER.unpack_from(buffer)
    found = state.aggregation_snapshot(cpu)
    data = b"".join(entry + bytes(-len(entry) % _ALIGNMENT) for entry in found.entries)
    return structures.BUFFER.pack(len(data), cpu, 0, found.drops, 0, 0, 0) + data


def _format(state: ConsumerState, buffer: bytes) -> bytes:
    """Return the length of a format, and the format if there is room for it."""
    _string, room, number = structures.FORMAT.unpack_from(buffer)
    text = state.format(number).encode("utf-8", "surrogateescape") + b"\0"
    return structures.FORMAT.pack(0, len(text), number) + (text if len(text) <= room else b"")


def _dofget(state: ConsumerState, _buffer: bytes) -> bytes:
    """Return the options in force, as DOF."""
    return state.options_as_dof()


def _replicate(state: ConsumerState, buffer: bytes) -> bytes:
    half = structures.PROBE.size
    (_, match), (_, create) = structures.unpack_probe(buffer), structures.unpack_probe(buffer[half:])
    state.replicate(match, create)
    return buffer


def _conf(state: ConsumerState, _buffer: bytes) -> bytes:
    """Return the version of DIF, the numbers of its registers, and the kernel's data model."""
    model = DataModel.LP64 if state.runtime.world.guest.isa.word == 8 else DataModel.ILP32
    return structures.CONFIGURATION.pack(DIF_VERSION, REGISTERS, REGISTERS, model, *(0,) * 8)


_TABLE: Final[dict[Request, Callable[[ConsumerState, bytes], bytes]]] = {
    Request.PROVIDER: _provider,
    Request.PROBES: _probes,
    Request.PROBEMATCH: _probematch,
    Request.PROBEARG: _probearg,
    Request.ENABLE: _enable,
    Request.EPROBE: _eprobe,
    Request.AGGDESC: _aggdesc,
    Request.BUFSNAP: _bufsnap,
    Request.AGGSNAP: _aggsnap,
    Request.FORMAT: _format,
    Request.DOFGET: _dofget,
    Request.REPLICATE: _replicate,
    Request.STATUS: lambda state, _buffer: structures.pack_status(state.status()),
    Request.GO: lambda state, _buffer: structures.CPU.pack(state.go()),
    Request.STOP: lambda state, _buffer: structures.CPU.pack(state.stop()),
    Request.CONF: _conf,
}

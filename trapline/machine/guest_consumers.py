"""/dev/dtrace/dtrace inside the kernel guest: each open of a guest's program is a consumer.

The guest's dtrace.ko passes each request on with the kernel's copy of its argument, whose size is
part of the command; the framework answers requests as commands and bytes
(`trapline.framework.device.ioctl`).  This module is between them: if a request has a pointer, the
data there are read from the calling process, and the answer is written there.

Source: FreeBSD sys/cddl/dev/dtrace/dtrace_ioctl.c.  The command of EPROBE says that the argument is
the structure, but it is a pointer to the structure.  Memory that the process has never accessed is
not present yet (EFAULT).

The structures are equal in 32-bit and 64-bit programs, because a pointer in them takes eight bytes
(DTRACE_PTR in sys/dtrace.h).  The commands differ, because they contain the size of the argument,
which is usually a pointer.
"""

from __future__ import annotations

import errno
import struct
from typing import Final, NamedTuple

from emu.guest.kernel.guest import KernelGuest
from emu.support.words import BadAddressError
from trapline.framework.device import structures
from trapline.framework.device.dtrace import DTrace
from trapline.framework.device.ioctl import OpenDevice
from trapline.framework.device.structures import REQUESTS, Request

_IOCPARM_MASK: Final = 0x1FFF
# FreeBSD's number, like all errors of requests; the numbers below 35 are the same on all systems.
_ENOTTY: Final = 25
_DOF_HEADER: Final = 64
# dofh_loadsz in the DOF's header.
_DOF_SIZE: Final = struct.Struct("<40xQ")
# Offset of the pointer in the structure to what follows the structure in the framework's form.
_DATA_POINTER: Final = {Request.BUFSNAP: 24, Request.AGGSNAP: 24, Request.FORMAT: 0}
_POINTER_SIZE: Final = 8
# Structures that end with records; their number is in the head.
_RECORDS: Final = {Request.EPROBE: structures.ENABLED, Request.AGGDESC: structures.AGGREGATION}
# Requests whose argument is a pointer to their structure.
_INDIRECT: Final = frozenset({Request.BUFSNAP, Request.AGGSNAP, Request.EPROBE, Request.AGGDESC, Request.DOFGET})


class _Model(NamedTuple):
    """The differences between 64-bit and 32-bit programs."""

    pointer: struct.Struct
    enable: struct.Struct
    """The structure of ENABLE (dtrace_enable_io_t): a pointer as it is, and how many probes
    matched."""

    def carried(self, request: Request) -> int:
        """Return the size in bytes of a request's argument."""
        if request is Request.ENABLE:
            return self.enable.size
        return self.pointer.size if request.is_indirect else request.code >> 16 & _IOCPARM_MASK

    def requests(self) -> dict[int, Request]:
        """Return the requests by their commands."""
        return {
            request.code & ~(_IOCPARM_MASK << 16) | self.carried(request) << 16: request
            for request in REQUESTS.values()
        }


# By the number of bytes of a word.
_MODELS: Final = {
    8: _Model(struct.Struct("<Q"), struct.Struct("<Qi4x")),
    4: _Model(struct.Struct("<I"), struct.Struct("<Ii")),
}


class GuestConsumers:
    """The consumers in one guest.  Implements `emu.guest.kernel.guest.Consumers`."""

    def __init__(self, guest: KernelGuest, dtrace: DTrace) -> None:
        self._guest = guest
        self._dtrace = dtrace
        self._states: dict[int, OpenDevice] = {}
        self._last = 0
        self._model = _MODELS[guest.isa.word]
        self._requests = self._model.requests()
        guest.consumers = self

    def open(self) -> int:
        """Return the number of a new consumer."""
        self._last += 1
        self._states[self._last] = self._dtrace.open()
        return self._last

    def close(self, consumer: int) -> None:
        """Close a consumer: its enablings are disabled."""
        self._states.pop(consumer).close()

    def ioctl(self, consumer: int, command: int, data: int) -> int:
        """Answer a request, and return an error number."""
        request = self._requests.get(command)
        if request is None:
            return _ENOTTY
        try:
            answer = self._enable if request is Request.ENABLE else self._answer
            return answer(self._states[consumer], request, data)
        except BadAddressError:
            return errno.EFAULT

    def _answer(self, state: OpenDevice, request: Request, data: int) -> int:
        guest, word = self._guest, self._model.pointer
        carried = guest.load(data, self._model.carried(request))
        user = word.unpack_from(carried)[0] if request in _INDIRECT else None
        buffer = carried if user is None else self._structure(request, user)
        answer = state.ioctl(request.code, buffer)
        if answer.errno:
            return answer.errno
        result = answer.data
        if request in _DATA_POINTER:
            offset, size = _DATA_POINTER[request], request.size
            after = offset + _POINTER_SIZE
            if result[size:]:
                guest.user_store(word.unpack_from(buffer, offset)[0], result[size:])
            result = result[:offset] + buffer[offset:after] + result[after:size]
        if user is not None:
            guest.user_store(user, result)
        else:
            guest.engine.memory.write(data, result[: len(carried)])
        return 0

    def _enable(self, state: OpenDevice, request: Request, data: int) -> int:
        guest, structure = self._guest, self._model.enable
        dof, _matched = structure.unpack(guest.load(data, structure.size))
        answer = state.ioctl(request.code, structures.ENABLE.pack(0, 0, 0) + self._dof(dof))
        if not answer.errno:
            _pointer, matched, _pad = structures.ENABLE.unpack_from(answer.data)
            guest.engine.memory.write(data, structure.pack(dof, matched))
        return answer.errno

    def _structure(self, request: Request, user: int) -> bytes:
        """Read the structure that a request points to."""
        head = _RECORDS.get(request)
        if head is None:
            return self._guest.user_load(user, request.size) if request.size else b""
        records = head.unpack(self._guest.user_load(user, head.size))[-1]
        return self._guest.user_load(user, head.size + max(records, 0) * structures.RECORD.size)

    def _dof(self, user: int) -> bytes:
        header = self._guest.user_load(user, _DOF_HEADER)
        return self._guest.user_load(user, min(_DOF_SIZE.unpack_from(header)[0], 1 << 20))

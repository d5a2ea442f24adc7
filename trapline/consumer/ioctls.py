"""The requests that a consumer makes of /dev/dtrace/dtrace, as a log: -x verbose_ioctl.

Source: FreeBSD sys/cddl/dev/dtrace/dtrace_ioctl.c (debug.dtrace.verbose_ioctl), dtrace.h (the codes).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from trapline.framework.device import Device


class Request(NamedTuple):
    """An ioctl."""

    name: str
    code: int


REQUESTS: Final = {
    "providers": Request("PROVIDER", 0xC0607801),
    "probes": Request("PROBES", 0xC1847802),
    "buffer_snapshot": Request("BUFSNAP", 0x80087804),
    "enable": Request("ENABLE", 0xC0107806),
    "aggregation_snapshot": Request("AGGSNAP", 0x80087807),
    "enabled_probe": Request("EPROBE", 0x80387808),
    "probe_argument": Request("PROBEARG", 0xC10C7809),
    "status": Request("STATUS", 0x4058780B),
    "go": Request("GO", 0x4004780C),
    "stop": Request("STOP", 0xC004780D),
    "aggregation": Request("AGGDESC", 0x8008780F),
    "format": Request("FORMAT", 0xC0107810),
}
"""Methods of a `Device` -> the requests they are."""
_MATCH: Final = Request("PROBEMATCH", 0xC1847805)


class LoggedDevice:
    """A device that tells of every request made of it.  Implements `trapline.framework.device.Device`."""

    def __init__(self, device: Device, log: Callable[[str], object]) -> None:
        self._device = device
        self._log = log

    def __getattr__(self, name: str) -> Any:
        """Return a method of the device; one that is a request is logged when it is called."""
        method = getattr(self._device, name)
        request = REQUESTS.get(name)
        return method if request is None else self._logged(method, request)

    def _logged(self, method: Callable[..., Any], request: Request) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            made = _MATCH if request.name == "PROBES" and arguments and arguments[0] is not None else request
            self._log(f"dtrace_ioctl: DTRACEIOC_{made.name} ({made.code:#010x})\n")
            return method(*arguments)

        return call

"""The errors of the consumer, in libdtrace's words."""

from __future__ import annotations

from typing import Final

from trapline.framework.base.device import DeviceError


class ConsumerError(Exception):
    """The trace cannot continue; the message is for the user."""


class SavingError(Exception):
    """A failure to save; the message says what cannot be saved, and why."""


_ENABLING: Final = {
    "EINVAL": "DIF program content is invalid",
    "E2BIG": "DIF program exceeds maximum program size",
    "EFAULT": "DIF program content is invalid",
}
_STARTING: Final = {
    "EACCES": "Destructive actions not allowed",
    "E2BIG": "END enablings exceed size of principal buffer",
    "ENOSPC": "Enabling exceeds size of buffer",
    "EALREADY": "Permission denied: dtrace is already tracing anonymously",
    "ENOENT": "No anonymous tracing state",
}


def enabling_error(error: DeviceError) -> ConsumerError:
    """Return the error of a program that the framework refused (dtrace_program_exec)."""
    text = _ENABLING.get(error.errno_name)
    reason = str(error)
    if text is None:
        return ConsumerError(reason)
    return ConsumerError(f"{text} ({reason})" if reason else text)


def starting_error(error: DeviceError) -> ConsumerError:
    """Return the error of a trace that could not begin (dtrace_go)."""
    return ConsumerError(_STARTING.get(error.errno_name, str(error)))

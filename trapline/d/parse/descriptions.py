"""Probe descriptions as text: the fields of their parts.

Source: FreeBSD libdtrace dt_subr.c (dtrace_xstr2desc).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from emu.support.did_you_mean import nearest
from trapline.d.errors import CompileError
from trapline.d.parse.literals import read_digits
from trapline.framework.base.program import (
    FUNCTION_NAME_MAX,
    MODULE_NAME_MAX,
    PROBE_NAME_MAX,
    PROVIDER_NAME_MAX,
    ProbeDescription,
)

if TYPE_CHECKING:
    from trapline.framework.base.device import ProbeInfo

# The least similarity of a field that is suggested: more than of other names, for there are more of them.
_SIMILAR: Final = 0.75
# Characters of a pattern.
_PATTERN: Final = frozenset("*?[]\\")


class Form(Enum):
    """The flag of a program; the value is the number of fields that its descriptions can have."""

    SCRIPT = "-s", 4
    NAME = "-n", 4
    FUNCTION = "-f", 3
    MODULE = "-m", 2
    PROVIDER = "-P", 1
    ID = "-i", 0

    @property
    def flag(self) -> str:
        """The flag of the command."""
        return self.value[0]

    @property
    def fields(self) -> int:
        """The highest possible number of fields."""
        return self.value[1]


_DIGITS: Final = re.compile(r"[0-9]+")
_ID_MAX: Final = 0xFFFF_FFFF
_NAMES: Final = ("provider", "module", "function", "name")
_LIMITS: Final = (PROVIDER_NAME_MAX, MODULE_NAME_MAX, FUNCTION_NAME_MAX, PROBE_NAME_MAX)


def parse_description(text: str, form: Form, line: int) -> ProbeDescription:
    """Read a description: its fields count from the right.  Raises `CompileError` D_PDESC_INVAL."""
    if _DIGITS.fullmatch(text):
        if form not in {Form.SCRIPT, Form.NAME, Form.ID}:
            raise CompileError("D_PDESC_INVAL", f"{form.flag} {text}: probe ids are given with -i", line)
        number = read_digits(text, 10)
        if not 0 < number <= _ID_MAX:
            raise CompileError("D_PDESC_INVAL", f"invalid probe identifier {text[:20]}", line)
        return ProbeDescription(id=number)
    if form is Form.ID:
        raise CompileError("D_PDESC_INVAL", f"-i {text}: a probe id is a number", line)
    parts = text.split(":")
    if len(parts) > form.fields:
        wanted = ":".join(_NAMES[: form.fields])
        raise CompileError("D_PDESC_INVAL", f"probe description {text} has too many fields ({wanted})", line)
    fields = [""] * (form.fields - len(parts)) + parts
    for name, field, limit in zip(_NAMES, fields, _LIMITS, strict=False):
        if len(field) >= limit:
            raise CompileError("D_PDESC_INVAL", f"the {name} of a probe has at most {limit - 1} characters", line)
    provider, module, function, name = fields + [""] * (len(_NAMES) - len(fields))
    return ProbeDescription(provider, module, function, name)


# bpftrace's name of a kind of probe -> what it is in D.  Source: bpftrace's docs/language.adoc.
_BPFTRACE: Final = {
    "kprobe": "fbt::{}:entry",
    "kretprobe": "fbt::{}:return",
    "uprobe": "pid$target::{}:entry",
    "uretprobe": "pid$target::{}:return",
    "interval": "tick-1s",
}


def why_none(
    wanted: ProbeDescription,
    reason: Callable[[ProbeDescription], str],
    probes: Callable[[ProbeDescription], Sequence[ProbeInfo]],
) -> str:
    """Return ` (...)` with the reason why no probe matches, or a name that is near; "": neither."""
    found = reason(wanted)
    if not found:
        first, *rest = [text for text in (wanted.provider, wanted.module, wanted.function, wanted.name) if text] or [""]
        if first in _BPFTRACE:
            found = f"that is bpftrace's; here it is {_BPFTRACE[first].format(rest[-1] if rest else 'NAME')}"
    return f" ({found})" if found else nearest_description(wanted, probes)


def nearest_description(wanted: ProbeDescription, probes: Callable[[ProbeDescription], Sequence[ProbeInfo]]) -> str:
    """Return ` (did you mean ...?)` where one field of a description is misspelled, else nothing."""

    def with_field(name: str, text: str) -> ProbeDescription:
        fields: dict[str, Any] = {name: text}
        return replace(wanted, **fields)

    for name in _NAMES:
        text = getattr(wanted, name)
        if not text or not _PATTERN.isdisjoint(text):
            continue
        known = {getattr(probe.description, name) for probe in probes(with_field(name, ""))}
        near = nearest(text, known, _SIMILAR) or next((one for one in known if sorted(one) == sorted(text)), None)
        if near is not None:
            return f" (did you mean {with_field(name, near)}?)"
    return ""

"""The checker: the student's programs and ours run over the same guest."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import trapline
from trapline.lab.course.work import Part, Work

_COMMAND = "cat /etc/motd; ls /bin"
_RIGHT = {
    "calls.d": ("calls", "fbt::malloc:entry { @calls[execname] = count(); }"),
    "bytes.d": ("bytes", 'syscall::read:return /execname == "cat" && (int)arg0 > 0/ { @bytes = sum(arg0); }'),
}
_HINTS = {
    "calls.d": "the key of the aggregation is what it is counted by",
    "bytes.d": "a predicate between slashes chooses the firings; sum() adds its argument up",
}


def check(work: Work) -> Iterator[Part]:
    """Check both programs."""
    for file in _RIGHT:
        yield Part(file, 5, lambda file=file: _wrong(work, file), _HINTS[file])


@cache
def _reference(program: str, isa: str) -> trapline.Trace:
    """Return the trace of our program: a run is the same each time."""
    return trapline.trace(program, isa=isa, command=_COMMAND)


def _wrong(work: Work, file: str) -> str:
    name, right = _RIGHT[file]
    program = work.text(file)
    if not program.strip():
        return "the file is empty"
    try:
        found = trapline.trace(program, isa=work.isa, command=_COMMAND, options={"hosttimeout": "30s"}).aggregation(
            name
        )
    except trapline.TraplineError as error:
        return str(error)
    wanted = _reference(right, work.isa).aggregation(name)
    if found == wanted:
        return ""
    differing = sorted(str(key or name) for key in {*found, *wanted} if found.get(key) != wanted.get(key))
    return f"@{name} is not right for {', '.join(differing[:3])}"

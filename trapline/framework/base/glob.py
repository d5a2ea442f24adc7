r"""Glob patterns of probe descriptions.

`*` any run, `?` one character, `[abc]`, `[a-z]`, `[!...]` one of (or none of) a set, `\` quotes the
next character.  The patterns become regular expressions once; what they mean is FreeBSD dtrace.c
dtrace_match_glob(), corners included: a `]` right after `[` or `[!` is a member, a set without its
end matches nothing, and `[z-a]` is just `a`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final

# How many `*` may be followed by more pattern (DTRACE_PROBEKEY_MAXDEPTH): with more, nothing matches.
DEPTH_MAX: Final = 8

_SPECIAL: Final = frozenset("[?*\\")
_NEVER: Final = re.compile(r"(?!)")


def is_glob(pattern: str) -> bool:
    """Return whether a pattern has any of the characters that make it one."""
    return not _SPECIAL.isdisjoint(pattern)


def matcher(pattern: str) -> Callable[[str], object] | None:
    """Return the test for one field of a description (its result is true or false).

    None: anything matches.
    """
    if not pattern:
        return None
    return compile_glob(pattern).fullmatch if is_glob(pattern) else pattern.__eq__


@lru_cache(maxsize=1024)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Translate a glob; its `fullmatch` decides."""
    parts: list[str] = []
    depth = 0
    at = 0
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "*":
            while pattern[at : at + 1] == "*":
                at += 1
            depth += at < len(pattern)
            parts.append(".*")
        elif character == "?":
            parts.append(".")
        elif character == "[":
            body, at = _set(pattern, at)
            if at < 0:
                return _NEVER
            parts.append(body)
        elif character == "\\" and at == len(pattern):
            return _NEVER
        else:
            if character == "\\":
                character = pattern[at]
                at += 1
            parts.append(re.escape(character))
    return re.compile("".join(parts), re.DOTALL) if depth <= DEPTH_MAX else _NEVER


def _set(pattern: str, at: int) -> tuple[str, int]:
    """Translate the set whose `[` is before `at`.

    Return it and where the pattern continues, -1 if it has no end.
    """
    negated = pattern[at : at + 1] == "!"
    first = at = at + negated
    members: list[str] = []
    low = ""
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        ranged = pattern[at] == "-" and low and pattern[at + 1 : at + 2] not in ("", "]")
        at += bool(ranged)
        if pattern[at] == "\\":
            at += 1
            if at == len(pattern):
                return "", -1
        character = pattern[at]
        at += 1
        members.append(re.escape(character))
        if ranged and low <= character:
            members.append(f"{re.escape(low)}-{re.escape(character)}")
        low = character
    if at >= len(pattern):
        return "", -1
    return f"[{'^' if negated else ''}{''.join(members)}]", at + 1

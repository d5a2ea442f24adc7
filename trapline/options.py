"""Every option of dtrace(1), with its kind.

-x, `#pragma D option` and setopt() all go through this table.

Shared by the compiler (pragmas, compile-time options) and the consumer, so it imports neither.
Source: FreeBSD libdtrace dt_options.c.  `timeout`, `hosttimeout`, `machinecode`, `demangle` and
`lines` are Trapline's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from typing import Final, TypeAlias

from emu.support.immutable import immutable

NANOSECONDS: Final = 1_000_000_000
# The largest stackindent: libdtrace has no limit, and would write them all before each frame.
_WIDEST: Final = 1 << 16

# The result of parsing: a number, a text, or None for "unset".
Value: TypeAlias = int | str | None

INVALID_NAME: Final = "Invalid option name"
INVALID_VALUE: Final = "Invalid value for specified option"
NOT_IN_PROGRAM: Final = "Option cannot be used from within a D program"
ACTIVE: Final = "Operation illegal when tracing is active"


class OptionError(Exception):
    """An invalid setting of an option; the message is libdtrace's."""


class Scope(Enum):
    """The time at which an option may be set."""

    COMPILE = "compile-time"
    RUN = "run-time"
    """Fixed once tracing has begun."""
    DYNAMIC = "dynamic"
    """May be set while tracing, by setopt()."""


class BufferPolicy(Enum):
    """Values of bufpolicy (DTRACEOPT_BUFPOLICY_*)."""

    RING = 0
    FILL = 1
    SWITCH = 2


@immutable
class Option:
    """One row of the table."""

    name: str
    scope: Scope
    parse: Callable[[str | None], Value]
    """Value from the text after `=` (None: no `=`).  Raises `OptionError`."""
    in_program: bool = True
    """Whether `#pragma D option` may set it."""
    repeats: bool = False
    """All values are used, in the given order, not only the last."""
    clears: str = ""
    """The flag that this one clears (kdefs clears knodefs)."""


_NUMBER = re.compile(r"\s*\+?(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)(.*)", re.DOTALL)
_UNITS: Final = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_TIMES: Final = {
    **dict.fromkeys(("", "ns", "nsec"), 1),
    **dict.fromkeys(("us", "usec"), 1_000),
    **dict.fromkeys(("ms", "msec"), 1_000_000),
    **dict.fromkeys(("s", "sec"), NANOSECONDS),
    **dict.fromkeys(("m", "min"), 60 * NANOSECONDS),
    **dict.fromkeys(("h", "hour"), 3600 * NANOSECONDS),
    **dict.fromkeys(("d", "day"), 86400 * NANOSECONDS),
}
_ON: Final = frozenset({"yes", "enable", "enabled", "true", "on", "set"})
_OFF: Final = frozenset({"no", "disable", "disabled", "false", "off", "unset", ""})


_DIGITS_MAX: Final = 64


def _number(text: str) -> tuple[int, str]:
    """Read a C integer constant at the start of `text`; return it and the rest."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise OptionError(INVALID_VALUE)
    digits = match[1]
    base = 16 if digits[:2] in {"0x", "0X"} else 8 if digits[0] == "0" else 10
    # No number of 64 bits has that many digits in any base, and Python refuses to read some thousand decimal digits.
    value = int(digits, base) if len(digits.lstrip("0xX")) <= _DIGITS_MAX else 1 << 63
    if value >= 1 << 63:
        raise OptionError(INVALID_VALUE)
    return value, match[2]


def parse_size(text: str | None) -> Value:
    """Read a size in bytes, with an optional k, m, g or t (powers of 1024)."""
    if text is None:
        return 0
    value, unit = _number(text)
    if unit.lower() not in _UNITS or (value := value << _UNITS[unit.lower()]) >= 1 << 63:
        raise OptionError(INVALID_VALUE)
    return value


def _parse_string_size(text: str | None) -> Value:
    """Read a size that DIF can describe: not 0, which stands for this option, and of 32 bits."""
    size = parse_size(text)
    if not isinstance(size, int) or not 0 < size < 1 << 32:
        raise OptionError(INVALID_VALUE)
    return size


def parse_time(text: str | None) -> Value:
    """Read a time in nanoseconds, with an optional unit.

    `hz` is a rate: the time between two events.
    """
    if text is None:
        return 0
    value, unit = _number(text)
    if unit.lower() == "hz":
        return NANOSECONDS // value if value else 0
    if unit.lower() not in _TIMES or (value := value * _TIMES[unit.lower()]) >= 1 << 63:
        raise OptionError(INVALID_VALUE)
    return value


def _parse_span(text: str | None) -> Value:
    """Read a time of an option of our own, which needs a unit: 60 may mean seconds or nanoseconds."""
    if text is not None and text.isdecimal() and int(text):
        raise OptionError(f"{text} has no unit: write {text}s or {text}ms")
    return parse_time(text)


def parse_scalar(text: str | None) -> Value:
    """Read a number, or a word for on or off; no value means 0, which is also "set".

    An empty value unsets the option.
    """
    if text is None:
        return 0
    if text.lower() in _OFF:
        return None
    if text.lower() in _ON:
        return 1
    value, rest = _number(text)
    if rest:
        raise OptionError(INVALID_VALUE)
    return value


def parse_flag(text: str | None) -> Value:
    """Accept no value at all."""
    if text is not None:
        raise OptionError(INVALID_VALUE)
    return 1


def parse_text(text: str | None) -> Value:
    """Take a value as it is."""
    if text is None:
        raise OptionError(INVALID_VALUE)
    return text


def _parse_name(text: str | None) -> Value:
    """Take the name of a variable, without a value."""
    if text is None or "=" in text:
        raise OptionError(INVALID_VALUE)
    return text


def _parse_count(minimum: int) -> Callable[[str | None], Value]:
    def parse(text: str | None) -> Value:
        value, rest = _number(text or "")
        if rest or value < minimum:
            raise OptionError(INVALID_VALUE)
        return value

    return parse


def _one_of(**words: Value) -> Callable[[str | None], Value]:
    def parse(text: str | None) -> Value:
        if text not in words:
            raise OptionError(INVALID_VALUE)
        return words[text]

    return parse


def _parse_indent(text: str | None) -> Value:
    """Read a number of blanks; so many that their text would fill the memory are refused."""
    value = parse_scalar(text)
    if isinstance(value, int) and not 0 <= value <= _WIDEST:
        raise OptionError(INVALID_VALUE)
    return value


_STYLES: Final = frozenset({"text", "json", "xml", "html"})


def _parse_oformat(text: str | None) -> Value:
    """Read a style of libxo, with `pretty` behind a comma; its other options are refused."""
    styles = [word for word in (text or "").split(",") if word != "pretty"]
    unknown = next((word for word in styles if word not in _STYLES), None)
    if unknown:
        raise OptionError(f"'{unknown}': of libxo's words there are json, xml, html, text and pretty")
    if len(styles) != 1:
        raise OptionError(INVALID_VALUE)
    return ",".join([*styles, *(["pretty"] if text != styles[0] else [])])


def _words(*words: str) -> Callable[[str | None], Value]:
    return _one_of(**{word: word for word in words})


_STABILITIES = "internal|private|obsolete|external|unstable|evolving|stable|standard"
_ATTRIBUTE = re.compile(rf"({_STABILITIES})/({_STABILITIES})/(unknown|cpu|platform|group|isa|common)", re.IGNORECASE)
_VERSION = re.compile(r"([0-9]{1,3})\.([0-9]{1,3})(?:\.([0-9]{1,3}))?")
# The versions of the language.
_VERSIONS: Final = frozenset(
    "1.0 1.1 1.2 1.2.1 1.2.2 1.3 1.4 1.4.1 1.5 1.6 1.6.1 1.6.2 1.6.3 1.7 1.7.1 1.8 1.8.1 1.9 1.9.1 1.10 1.11 1.12"
    " 1.12.1 1.13 1.14".split()
)


def _matching(pattern: re.Pattern[str]) -> Callable[[str | None], Value]:
    def parse(text: str | None) -> Value:
        if text is None or not pattern.fullmatch(text):
            raise OptionError(INVALID_VALUE)
        return text

    return parse


def _parse_version(text: str | None) -> Value:
    match = _VERSION.fullmatch(text or "")
    if match is None:
        raise OptionError("Version is not properly formatted or is too large")
    known = ".".join(str(int(part)) for part in match.groups() if part and (part != match[3] or int(part)))
    if known not in _VERSIONS:
        raise OptionError("Requested version is not supported by compiler")
    return known


def _rows() -> list[Option]:
    compile_time, run, dynamic = Scope.COMPILE, Scope.RUN, Scope.DYNAMIC
    flags = (
        "aggpercpu argref core cpp debug defaultargs droptags empty errtags knodefs lazyload nolibs pspec strip"
        " unodefs verbose verbose_ioctl zdefs"
    )
    return [
        *(Option(name, compile_time, parse_flag) for name in flags.split()),
        Option("amin", compile_time, _matching(_ATTRIBUTE)),
        Option("cpphdrs", compile_time, parse_flag, in_program=False),
        Option("cpppath", compile_time, parse_text, in_program=False),
        Option("ctypes", compile_time, parse_text),
        Option("define", compile_time, parse_text, in_program=False, repeats=True),
        Option("dtypes", compile_time, parse_text),
        Option("encoding", compile_time, _words("ascii", "utf8")),
        Option("format", compile_time, _words("text", "json")),
        Option("hosttimeout", compile_time, _parse_span, in_program=False),
        Option("evaltime", compile_time, _words("exec", "preinit", "postinit", "main")),
        Option("incdir", compile_time, parse_text, in_program=False, repeats=True),
        Option("machinecode", compile_time, parse_flag, in_program=False),
        Option("demangle", compile_time, parse_flag, in_program=False),
        Option("lines", compile_time, parse_flag, in_program=False),
        Option("iregs", compile_time, _parse_count(1)),
        Option("kdefs", compile_time, parse_flag, clears="knodefs"),
        Option("late", compile_time, _words("dynamic", "static")),
        Option("ldpath", compile_time, parse_text, in_program=False),
        Option("libdir", compile_time, parse_text, repeats=True),
        Option("linkmode", compile_time, _words("kernel", "primary", "dynamic", "static")),
        Option("linktype", compile_time, _words("elf", "dof")),
        Option("oformat", compile_time, _parse_oformat),
        Option("pgmax", compile_time, _parse_count(0)),
        Option("setenv", compile_time, parse_text, in_program=False, repeats=True),
        Option("stdc", compile_time, _words("a", "c", "s", "t"), in_program=False),
        Option("syslibdir", compile_time, parse_text),
        Option("tree", compile_time, _parse_count(1)),
        Option("tregs", compile_time, _parse_count(1)),
        Option("udefs", compile_time, parse_flag, clears="unodefs"),
        Option("undef", compile_time, parse_text, in_program=False, repeats=True),
        Option("unsetenv", compile_time, _parse_name, in_program=False, repeats=True),
        Option("version", compile_time, _parse_version),
        Option("aggsize", run, parse_size),
        Option("bufsize", run, parse_size),
        Option("bufpolicy", run, _one_of(**{policy.name.lower(): policy.value for policy in BufferPolicy})),
        Option("bufresize", run, _one_of(auto=0, manual=1)),
        Option("cleanrate", run, parse_time),
        Option("cpu", run, parse_scalar),
        Option("destructive", run, parse_scalar),
        Option("dynvarsize", run, parse_size),
        Option("grabanon", run, parse_scalar),
        Option("jstackframes", run, parse_scalar),
        Option("jstackstrsize", run, parse_size),
        Option("nspec", run, parse_scalar),
        Option("specsize", run, parse_size),
        Option("stackframes", run, parse_scalar),
        Option("statusrate", run, parse_time),
        Option("strsize", run, _parse_string_size),
        Option("temporal", run, parse_scalar),
        Option("timeout", run, _parse_span),
        Option("ustackframes", run, parse_scalar),
        Option("aggrate", dynamic, parse_time),
        *(Option(f"aggsort{what}", dynamic, parse_scalar) for what in ("key", "keypos", "pos", "rev")),
        *(Option(f"agg{what}", dynamic, parse_scalar) for what in ("hist", "pack", "zoom")),
        Option("flowindent", dynamic, parse_scalar),
        Option("quiet", dynamic, parse_scalar),
        Option("rawbytes", dynamic, parse_scalar),
        Option("stackindent", dynamic, _parse_indent),
        Option("switchrate", dynamic, parse_time),
    ]


# The table, by name.
OPTIONS: Final[dict[str, Option]] = {option.name: option for option in _rows()}


class Options:
    """The options of one consumer: what was set, by name."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}
        self._lists: dict[str, list[str]] = {}

    def set(self, name: str, text: str | None = None, *, active: bool = False, in_program: bool = False) -> Option:
        """Set option `name` from the text after `=` (None: there was no `=`) and return its row.

        `active`: tracing has begun, so only dynamic options can be set.  `in_program`: a pragma
        sets it.  Raises `OptionError`.
        """
        option = OPTIONS.get(name)
        if option is None:
            raise OptionError(INVALID_NAME)
        if active and option.scope is Scope.RUN:
            raise OptionError(ACTIVE)
        value = option.parse(text)
        if in_program and not option.in_program:
            raise OptionError(NOT_IN_PROGRAM)
        if option.clears:
            self._values.pop(option.clears, None)
        elif option.repeats:
            self._lists.setdefault(name, []).append(str(value))
        else:
            self._values[name] = value
        return option

    def is_set(self, name: str) -> bool:
        """Return whether an option is set; a scalar set to 0 is."""
        return self._values.get(name) is not None

    def number(self, name: str, default: int = 0) -> int:
        """Return a numeric option, or `default` where it is not set."""
        value = self._values.get(name)
        return value if isinstance(value, int) else default

    def text(self, name: str, default: str = "") -> str:
        """Return a text option, or `default` where it is not set."""
        value = self._values.get(name)
        return value if isinstance(value, str) else default

    def every(self, name: str) -> tuple[str, ...]:
        """Return all values of an option that repeats, such as define and libdir."""
        return tuple(self._lists.get(name, ()))

    def run_time(self) -> dict[str, int]:
        """Return the run-time and dynamic options that are set, for `Device.set_option`."""
        return {
            name: value
            for name, value in self._values.items()
            if isinstance(value, int) and OPTIONS[name].scope is not Scope.COMPILE
        }


def parse_assignment(text: str) -> tuple[str, str | None]:
    """Split `name=value` or `name`; the value is None where there is no `=`."""
    name, equals, value = text.partition("=")
    return name, value if equals else None

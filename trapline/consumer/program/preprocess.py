"""The C preprocessor of -C, by pcpp.

Source: FreeBSD libdtrace dt_cc.c (dt_preproc), dt_open.c (the names that are always defined).
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pcpp import Preprocessor
from pcpp.preprocessor import Action, OutputDirective

from trapline.framework.base.program import DataModel
from trapline.options import Options
from trapline.support.input_files import readable

# Language version 1.14, as __SUNW_D_VERSION has it: 8 bits major, 12 minor, 12 micro.
_VERSION: Final = 0x0100E000
_EVERYWHERE: Final = f"""unix __unix __unix__ __ELF__ __STDC__ __LITTLE_ENDIAN__ __SUNW_D
    __SUNW_D_VERSION={_VERSION:#x} __CHAR_BIT__=8 __ORDER_LITTLE_ENDIAN__=1234 __ORDER_BIG_ENDIAN__=4321
    __BYTE_ORDER__=__ORDER_LITTLE_ENDIAN__"""
_MODELS: Final = {
    DataModel.LP64: "__LP64__ _LP64 __SIZEOF_POINTER__=8 __SIZEOF_LONG__=8 __SUNW_D_64",
    DataModel.ILP32: "__ILP32__ _ILP32 __SIZEOF_POINTER__=4 __SIZEOF_LONG__=4 __SUNW_D_32",
}
_I386: Final = "i386 __i386 __i386__"
# The names that cpp(1) of the traced system defines with -m64 and -m32, by the directory of trapline/dlib of its ISA or
# system.
_MACHINES: Final = {
    "x86_64": ("__amd64 __amd64__ __x86_64 __x86_64__", _I386),
    "i386": (_I386,) * 2,
    "aarch64": ("__aarch64__ __AARCH64EL__",) * 2,
    "riscv64": ("__riscv __riscv_xlen=64",) * 2,
    "kernel": ("__FreeBSD__=15 __FreeBSD_cc_version=1500001",) * 2,
    "linux": ("linux __linux __linux__ __gnu_linux__",) * 2,
    "linux-kernel": ("linux __linux __linux__ __gnu_linux__",) * 2,
}


def predefined(libraries: Sequence[str], model: DataModel) -> Iterator[str]:
    """Yield the names that cpp(1) of a machine defines, each with its value.

    libdtrace calls it with -m32 or -m64 on x86 (dt_open.c, dt_vopen).
    """
    wide, narrow = zip(*(_MACHINES.get(one, ("", "")) for one in libraries), strict=True)
    machines = narrow if model is DataModel.ILP32 else wide
    for word in " ".join((_EVERYWHERE, _MODELS[model], *machines)).split():
        name, _, value = word.partition("=")
        yield f"{name} {value or 1}"


# The largest number of tokens after expansion of macros: a few lines can expand to a thousand million.
_GROWTH: Final = 300_000
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_BRANCH: Final = re.compile(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b")


class PreprocessorError(Exception):
    """A text that the preprocessor refuses; the message has the file and the line."""


class _Preprocessor(Preprocessor):
    """Stores errors, notes included files, and does not change D's control lines."""

    def __init__(self) -> None:
        super().__init__()
        self._grown = 0
        """Tokens that macros have become beyond those that named them."""
        self.errors: list[str] = []
        self.included: list[str] = []

    def expand_macros(self, tokens: list[Any], expanding_from: list[str] = []) -> list[Any]:  # noqa: B006  as pcpp has it
        """Expand macros.  Raises `PreprocessorError` if they grow without limit."""
        before = len(tokens)
        expanded: list[Any] = super().expand_macros(tokens, expanding_from)
        self._grown += len(expanded) - before
        if self._grown > _GROWTH:
            raise PreprocessorError(f"macros expand to more than {_GROWTH:,} tokens")
        return expanded

    def on_error(self, file: str, line: int, msg: str) -> None:
        """Take an error."""
        self.errors.append(f'"{file}", line {line}: {msg.strip()}')

    def on_directive_unknown(self, directive: Any, toks: Any, ifpassthru: Any, precedingtoks: Any) -> None:
        """Pass #pragma, #ident and #error on to the compiler."""
        del directive, toks, ifpassthru, precedingtoks
        raise OutputDirective(Action.IgnoreAndPassThrough)

    def on_file_open(self, is_system_include: Any, includepath: str) -> Any:
        """Open an included file.  Raises OSError."""
        file = super().on_file_open(is_system_include, str(readable(includepath)))
        self.included.append(includepath)
        return file


def preprocess(text: str, path: str, options: Options, defined: Iterable[str] = ()) -> tuple[str, list[str]]:
    """Preprocess a script; also return the files it included.

    `defined` are the names that exist already.  Options define, undef and incdir are those of -D,
    -U and -I.  Raises `PreprocessorError`.
    """
    if text.startswith("#!"):
        text = "\n" + text.partition("\n")[2]
    _check_branches(text, path)
    machine = _Preprocessor()
    for definition in defined:
        machine.define(definition)
    for folder in options.every("incdir"):
        machine.add_path(folder)
    for definition in options.every("define"):
        name, equals, value = definition.partition("=")
        machine.define(f"{name} {value if equals else 1}")
    for name in options.every("undef"):
        machine.undef(name)
    # In line markers the script has its given name, and other files have paths relative to the current directory.
    script = re.escape(os.path.abspath(path))  # noqa: PTH100  pcpp's way: resolve() would follow links
    machine.rewrite_paths = [(f"{script}$", path.replace("\\", r"\\")), machine.rewrite_paths[0]]
    out = io.StringIO()
    try:
        machine.parse(text, path)
        machine.write(out)
    except (AttributeError, IndexError, TypeError, ValueError, RecursionError) as error:
        # pcpp does not expect every directive that is incomplete: `#define` alone is an IndexError.
        raise PreprocessorError(f'"{path}": a directive is malformed') from error
    if machine.errors:
        raise PreprocessorError(machine.errors[0])
    return out.getvalue(), machine.included


def _check_branches(text: str, path: str) -> None:
    """Refuse a second #else, or an #elif after it, which pcpp accepts.

    Raises `PreprocessorError`.
    """
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    ended: list[bool] = []
    for number, line in enumerate(text.splitlines(), 1):
        found = _BRANCH.match(line)
        if found is None:
            continue
        word = found[1]
        if word.startswith("if"):
            ended.append(False)
        elif word == "endif":
            if ended:
                ended.pop()
        elif ended:
            if ended[-1]:
                raise PreprocessorError(f'"{path}", line {number}: #{word} after #else')
            ended[-1] = word == "else"

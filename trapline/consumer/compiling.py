"""From the sources of a command line to programs.

Source: FreeBSD cmd/dtrace/dtrace.c (compile_str, compile_file).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trapline.consumer.usage import Request, Source, Specifier
from trapline.d.compiler import CompileContext, CompileError, Form, Globals, compile_program
from trapline.d.scopes import Foreign, NoNames

if TYPE_CHECKING:
    from trapline.consumer.session import Session
    from trapline.framework.program import ProbeDescription, Program

_FORMS: Final = {
    Specifier.SCRIPT: Form.SCRIPT,
    Specifier.NAME: Form.NAME,
    Specifier.FUNCTION: Form.FUNCTION,
    Specifier.MODULE: Form.MODULE,
    Specifier.PROVIDER: Form.PROVIDER,
    Specifier.ID: Form.ID,
}
PID: Final = 99_999
"""$pid: dtrace runs outside the guest, so this is a pid that no process of it ever has."""
_COMMAND: Final = "dtrace"


class ProcessProbeError(Exception):
    """Probes of a process that cannot be made; `tag` is libdtrace's name of the error."""

    def __init__(self, tag: str, message: str) -> None:
        super().__init__(message)
        self.tag = tag


Provide = Callable[["ProbeDescription"], "ProbeDescription"]
"""Makes the probes of processes that a description asks for; returns it as they are named.

Raises `ProcessProbeError`.
"""


def provide_nothing(wanted: ProbeDescription) -> ProbeDescription:
    """Make no probes: there are no processes to have them."""
    return wanted


class Compiler:
    """Compiles the programs of one session; they share their variables and aggregations."""

    def __init__(
        self,
        session: Session,
        request: Request,
        target: int,
        provide: Provide = provide_nothing,
        report: Callable[[str], object] = lambda _text: None,
        foreign: Foreign | None = None,
    ) -> None:
        self._session = session
        self._report = report
        self._provide = provide
        self._arguments = tuple(request.arguments)
        self.names = Globals(foreign=foreign or NoNames())
        """What the programs declare."""
        self._numbers = {"pid": PID, "ppid": 1, "pgid": PID, "sid": PID, "target": target}
        if request.allow_zero:
            session.options.set("zdefs")

    def compile(self, source: Source) -> Program:
        """Compile a source of the command line.

        Raises OSError for a script that cannot be read, and `trapline.d.errors.CompileError`.
        """
        if source.specifier is not Specifier.SCRIPT:
            return self.compile_text(source.text, source, self._arguments)
        text = Path(source.text).read_text("utf-8", "surrogateescape")
        if self._session.options.is_set("cpp"):
            text = self._preprocessed(text, source.text)
        return self.compile_text(text, source, self._arguments)

    def _preprocessed(self, text: str, path: str) -> str:
        from trapline.consumer.preprocess import PreprocessorError, preprocess  # noqa: PLC0415  takes time, for -C alone

        try:
            found, included = preprocess(text, path, self._session.options)
        except PreprocessorError as error:
            raise CompileError("D_UNKNOWN", f"{error}: the preprocessor failed") from None
        if self._session.options.is_set("cpphdrs"):
            self._report("".join(f"{name}\n" for name in included))
        return found

    def compile_text(self, text: str, source: Source, arguments: Sequence[str]) -> Program:
        """Compile a text, with the arguments $1, $2 ...  Raises `trapline.d.errors.CompileError`."""
        script = source.specifier is Specifier.SCRIPT
        context = CompileContext(
            self._session.options,
            self._session.device.probes,
            self._session.device.probe_argument,
            (source.text if script else _COMMAND, *arguments),
            self._numbers,
            _FORMS[source.specifier],
            self.names,
            self._make_probes,
        )
        return compile_program(text, context)

    def _make_probes(self, wanted: ProbeDescription) -> ProbeDescription:
        try:
            return self._provide(wanted)
        except ProcessProbeError as error:
            raise CompileError(error.tag, str(error)) from None

"""From the sources of a command line to programs.

Source: FreeBSD cmd/dtrace/dtrace.c (compile_str, compile_file).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from emu.support.words import decimal
from trapline.consumer.program import library
from trapline.consumer.request import Request, Source, Specifier
from trapline.d.check.builtins import NEWEST
from trapline.d.compiler import CompileContext, CompileError, Form, Globals, compile_program
from trapline.d.errors import Location
from trapline.d.types.data_models import MODELS
from trapline.d.types.names import Foreign, NoNames
from trapline.framework.base.program import ProbeDescription
from trapline.options import Options
from trapline.support.input_files import readable

if TYPE_CHECKING:
    from trapline.consumer.session import Session
    from trapline.framework.base.program import Program

_FORMS: Final = {
    Specifier.SCRIPT: Form.SCRIPT,
    Specifier.NAME: Form.NAME,
    Specifier.FUNCTION: Form.FUNCTION,
    Specifier.MODULE: Form.MODULE,
    Specifier.PROVIDER: Form.PROVIDER,
    Specifier.ID: Form.ID,
}
# $pid: dtrace runs outside the guest, so this is a pid that no process of it ever has.
PID: Final = 99_999
_PID_MAX: Final = (1 << 31) - 1
_COMMAND: Final = "dtrace"
# The environment variable that makes libdtrace log its actions.
_DEBUG: Final = "DTRACE_DEBUG"


class Compiled(NamedTuple):
    """A source of the command line, and its compiled form."""

    source: Source
    program: Program


class ProcessProbeError(Exception):
    """Probes of a process that cannot be made; `tag` is libdtrace's name of the error."""

    def __init__(self, tag: str, message: str) -> None:
        super().__init__(message)
        self.tag = tag


# Makes the probes of processes that a description names; returns it with the names of the probes.
#
# Raises `ProcessProbeError`.
Provide = Callable[["ProbeDescription"], "ProbeDescription"]


def provide_nothing(wanted: ProbeDescription) -> ProbeDescription:
    """Make no probes: there are no processes to have them."""
    return wanted


class _Numbers(Mapping[str, int]):
    """Macro variables that are numbers.

    $target is determined when a program names it: the guest may have to run to the start of that
    process first.
    """

    _OWN: Final = {"pid": PID, "ppid": 1, "pgid": PID, "sid": PID}

    def __init__(self, target: Callable[[], int]) -> None:
        self._target = target

    def __getitem__(self, name: str) -> int:
        return self._target() if name == "target" else self._OWN[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._OWN, "target"))

    def __len__(self) -> int:
        return len(self._OWN) + 1


class Compiler:
    """Compiles the programs of one session; they share their variables and aggregations."""

    def __init__(
        self,
        session: Session,
        request: Request,
        target: Callable[[], int],
        provide: Provide = provide_nothing,
        report: Callable[[str], object] = lambda _text: None,
        foreign: Foreign | None = None,
        libraries: Sequence[str] = (),
    ) -> None:
        self._session = session
        self._report = report
        self._provide = provide
        self._libraries = libraries
        self._loaded: set[Path] = set()
        """The library files that are compiled."""
        self._library_options = Options()
        self._library_options.set("empty")
        self._arguments = tuple(request.arguments)
        self._dump = session.output.write if request.dump else None
        foreign = foreign or NoNames()
        version = session.options.text("version")
        known = tuple(map(int, version.split("."))) if version else NEWEST
        model = MODELS[request.model or foreign.model.model]
        self.names = Globals(model, foreign=foreign, version=known)
        """The declarations of the programs."""
        self._numbers = _Numbers(target)
        self._has_target = bool(request.machine.commands or request.machine.pids)
        if request.allow_zero:
            session.options.set("zdefs")

    def compile(self, source: Source) -> Program:
        """Compile a source of the command line.

        Raises OSError for a script that cannot be read, and `trapline.d.errors.CompileError`.
        """
        if source.specifier is not Specifier.SCRIPT:
            return self.compile_text(source.text, source, self._arguments)
        text = readable(source.text).read_text("utf-8", "surrogateescape")
        if self._session.options.is_set("cpp"):
            text = self._preprocessed(text, source.text)
        return self.compile_text(text, source, self._arguments)

    def _preprocessed(self, text: str, path: str) -> str:
        from trapline.consumer.program.preprocess import PreprocessorError, predefined, preprocess  # noqa: PLC0415  takes time, for -C alone

        try:
            found, included = preprocess(
                text, path, self._session.options, predefined(self._libraries, self.names.model.model)
            )
        except PreprocessorError as error:
            raise CompileError("", f"Preprocessor failed to process input program: {error}") from None
        if self._session.options.is_set("cpphdrs"):
            self._report("".join(f"{name}\n" for name in included))
        return found

    def compile_text(self, text: str, source: Source, arguments: Sequence[str]) -> Program:
        """Compile a text, with the arguments $1, $2 ...

        Raises `trapline.d.errors.CompileError`.
        """
        self._load_libraries(text)
        script = source.specifier is Specifier.SCRIPT
        context = CompileContext(
            self._session.options,
            self._session.device.probes,
            (source.text if script else _COMMAND, *arguments),
            self._numbers,
            _FORMS[source.specifier],
            self.names,
            self._make_probes,
            self._session.device.why_none,
            self._session.device.probe_argument,
            self._report,
            self._exists,
            prepare=self._load_libraries,
            target=self._has_target,
            dump=self._dump,
            first=self._session.device.first,
        )
        self._debug(f"compiling {source.text}")
        return compile_program(text, context)

    def load_given_libraries(self) -> None:
        """Compile the libraries of -L, even if no program follows.  Raises `CompileError`."""
        if self._session.options.every("libdir"):
            self._load_libraries("")

    def _load_libraries(self, text: str) -> None:
        """Compile the D libraries: all of -L first, then Trapline's own that a text names."""
        if self._session.options.is_set("nolibs"):
            return
        given = library.files([Path(folder) for folder in self._session.options.every("libdir")])
        names = {one.path.name for one in given}
        own = library.files([library.HOME / name for name in self._libraries])
        own = [one for one in own if one.path.name not in names]
        wanted = [*given, *library.needed(own, text, given)]
        if all(one.path in self._loaded for one in wanted):
            return
        try:
            for file in library.in_order(wanted, self._exists):
                if file.path not in self._loaded:
                    self._loaded.add(file.path)
                    self._debug(f"loading library {file.path}")
                    self._compile_library(file)
        except library.LibraryError as error:
            raise CompileError("D_UNKNOWN", str(error)) from None

    def _debug(self, text: str) -> None:
        """Tell what is done, if that is wanted."""
        if _DEBUG in os.environ or self._session.options.is_set("debug"):
            self._report(f"libdtrace DEBUG: {text}\n")

    def _exists(self, kind: str, name: str) -> bool:
        """Return whether there is a module or a provider.

        Neither question makes probes: a Linux kernel has more than 100,000 of them.
        """
        return self.names.has_module(name) if kind == "module" else self._session.device.has_provider(name)

    def _compile_library(self, file: library.LibraryFile) -> None:
        context = CompileContext(self._library_options, names=self.names, arguments=(str(file.path),), library=True)
        try:
            compile_program(file.text, context)
        except CompileError as error:
            error.location = Location(error.location.line if error.location else 0, str(file.path))
            raise

    def _make_probes(self, wanted: ProbeDescription) -> ProbeDescription:
        """Make the probes of the process in a provider's name (dt_pid_create_probes)."""
        try:
            self._check_process(wanted.provider)
            return self._provide(wanted)
        except ProcessProbeError as error:
            raise CompileError(error.tag, str(error)) from None

    def _check_process(self, name: str) -> None:
        """Check the pid that an unknown provider's name ends with.  Raises `ProcessProbeError`."""
        digits = name[len(name.rstrip("0123456789")) :]
        if not digits or self._session.device.has(ProbeDescription(provider=name)):
            return
        if name == digits:
            raise ProcessProbeError("D_PROC_BADPROV", f"'{name}' is not a valid provider")
        if not 0 < (decimal(digits) or 0) <= _PID_MAX:
            raise ProcessProbeError("D_PROC_BADPID", f"'{name}' does not contain a valid pid")
        if self._provide is provide_nothing:
            raise ProcessProbeError("D_PROC_GRAB", f"failed to grab process {digits}: no process here has probes")

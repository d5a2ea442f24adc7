"""dtrace(1): the command.

Source: FreeBSD cmd/dtrace/dtrace.c.  The machine is opened by what calls `main`: see
`CommandEnvironment`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from emu.guest.base import GuestError
from trapline.consumer import jsonlines
from trapline.consumer.client import Client
from trapline.consumer.environment import CommandEnvironment, MachineError
from trapline.consumer.errors import SavingError
from trapline.consumer.loop import HostLimit
from trapline.consumer.output import FAILURE, NAME, SUCCESS, CommandEnd, Messages, Output, open_for_append
from trapline.consumer.program.compile import Compiled, Compiler
from trapline.consumer.program.describe import Describer
from trapline.consumer.program.probe_list import HEADING
from trapline.consumer.records.consume import Handlers
from trapline.consumer.request import Mode, Request, Source
from trapline.consumer.session import Session
from trapline.consumer.text.demangle import DemanglingError, demangler
from trapline.consumer.text.structure import members, show
from trapline.consumer.trace import Tracing
from trapline.consumer.usage import USAGE, FlagError, UsageError, parse_arguments
from trapline.d.compiler import type_of_text
from trapline.d.errors import CompileError
from trapline.d.parse.descriptions import why_none
from trapline.export.events import ExportError
from trapline.framework.base.dynvars import STRING_SIZE
from trapline.options import OptionError, parse_time

if TYPE_CHECKING:
    from trapline.consumer.export import Exporter
    from trapline.consumer.oformat import Document
    from trapline.consumer.records.faults import Drop, Fault
    from trapline.consumer.records.statements import Firing
    from trapline.d.types.types import Type
    from trapline.framework.base.program import Program

USAGE_FAILURE: Final = 2
VERSION: Final = "Sun D 1.14"
_HOST_TIMEOUT: Final = "hosttimeout"
_MACHINE_CODE: Final = "machinecode"
# Options that name the files of the containers C and D of types.
_CONTAINERS: Final = ("ctypes", "dtypes")
# Options that determine the sizes of records.
_OF_RECORDS: Final = ("strsize", "stackframes", "ustackframes", "jstackframes", "jstackstrsize")
_VERBOSE_IOCTL: Final = "verbose_ioctl"
# The modes whose result is a file.
_SAVED: Final = frozenset({Mode.HEADER, Mode.LINK, Mode.ANONYMOUS})
# Size of the principal and the aggregation buffer, where the command line does not say (dtrace.c).
_BUFFER: Final = "4m"


def main(argv: Sequence[str], environment: CommandEnvironment) -> int:
    """Run dtrace with arguments (without the name of the command) and return its exit status."""
    try:
        return _Command(argv, environment).run()
    except CommandEnd as end:
        return end.status
    except BrokenPipeError:
        raise  # for the caller of the command: the reader of the output has exited
    except OSError as error:
        environment.stderr.write(f"{NAME}: failed to write output: {error.strerror}\n")
        environment.abandon_output()
        return FAILURE


class _Command:
    """One run of the command."""

    def __init__(self, argv: Sequence[str], environment: CommandEnvironment) -> None:
        self._argv = argv
        self._environment = environment
        self._messages = Messages(environment.stderr.write)
        self._say, self._fail = self._messages.say, self._messages.fail
        self._request = Request()
        self._output = Output(environment.stdout)
        self._limit = HostLimit(NAME)
        self._exporter: Exporter | None = None
        self._document: Document | None = None

    def run(self) -> int:
        if not self._argv:
            return self._usage()
        try:
            self._request = parse_arguments(self._argv)
        except FlagError as error:
            self._say(str(error))
            return self._usage()
        except UsageError as error:
            self._say(str(error))
            return USAGE_FAILURE
        if self._request.help:
            self._output.write(USAGE)
            return SUCCESS
        return self._dispatch(self._request.mode)

    def _dispatch(self, mode: Mode) -> int:
        if mode is Mode.VERSION:
            self._output.write(f"{NAME}: {VERSION}\n")
            return SUCCESS
        self._start_limit()
        try:
            return self._do(mode)
        finally:
            self._limit.stop()

    def _do(self, mode: Mode) -> int:
        self._open()
        try:
            self._load_libraries()
            compiled = [self._compile(source) for source in self._request.sources]
            if mode in _SAVED:
                return self._save(mode, compiled)
            self._open_output()
            if mode is Mode.LIST:
                return self._list(compiled)
            self._document = self._structured()
            tracing = Tracing(
                self._session,
                self._machine,
                self._request,
                self._describer,
                self._output,
                self._limit,
                self._messages,
                self._exporter,
                self._document,
            )
            return tracing.run(compiled)
        except GuestError as error:
            # BEGIN or END has ended the guest, as panic() does; the loop shows every other end.
            self._fail(error.report())
        finally:
            self._session.close()

    # Messages on standard error

    def _usage(self) -> int:
        self._messages.write(USAGE)
        return USAGE_FAILURE

    def _fault(self, fault: Fault) -> None:
        self._say(fault.message)

    def _drop(self, drop: Drop) -> None:
        message = drop.message(tags=self._session.options.is_set("droptags"))
        if self._document is not None:
            self._document.drop(drop, message)
        else:
            self._say(message)

    def _firing(self, firing: Firing) -> bool:
        """Show a record as -x oformat or -x format=json asks for; else as dtrace(1) does."""
        if self._exporter is not None:
            self._exporter.add(firing)
        if self._document is not None:
            self._document.firing(firing)
            return False
        if not jsonlines.wanted(self._session.options):
            return True
        if firing.values:
            self._output.write(jsonlines.firing_line(firing))
        firing.act()
        return False

    def _show_type(self, name: str, data: bytes) -> str | None:
        """Show what print() has recorded; None: as trace() would."""
        type_ = self._printed_type(name)
        return None if type_ is None else show(type_, data, self._session.symbols.function)

    def _show_members(self, name: str, data: bytes) -> list[dict[str, str]] | None:
        """Show what print() has recorded as objects, for -x oformat."""
        type_ = self._printed_type(name)
        return None if type_ is None else list(members(type_, data, self._session.symbols.function))

    def _printed_type(self, name: str) -> Type | None:
        names = self._compiler.names
        try:
            return names.printed.get(name) or type_of_text(name, names)
        except CompileError:
            return None

    def _structured(self) -> Document | None:
        """Return the document of -x oformat; None: the output is text."""
        wanted = self._session.options.text("oformat", "text")
        if wanted.startswith("text"):
            return None
        from trapline.consumer.oformat import Document  # noqa: PLC0415  few commands write one

        return Document(self._session, self._output, wanted, self._show_members)

    # Getting ready

    def _start_limit(self) -> None:
        """Start to count the host's time, before anything that may take some."""
        texts = [setting.value for setting in self._request.settings if setting.name == _HOST_TIMEOUT]
        try:
            limit = parse_time(texts[-1]) if texts else None
        except OptionError as error:
            self._fail(f"failed to set -x {_HOST_TIMEOUT}: {error}")
        if isinstance(limit, int):
            self._limit.start(limit)

    def _open(self) -> None:
        """Open the machine and a session on it, and set the options of the command line."""
        try:
            self._machine = self._environment.open_machine(self._request.machine)
            verbose = any(setting.name == _VERBOSE_IOCTL for setting in self._request.settings)
            self._limit.interrupt = self._machine.guest.interrupt
            device = Client(self._machine.dtrace.open(), self._messages.write if verbose else None)
        except GuestError as error:
            self._fail(error.report())
        except MachineError as error:
            self._fail(str(error))
        except OSError as error:
            self._fail(f"{error.filename}: {(error.strerror or str(error)).lower()}")
        handlers = Handlers(
            self._fault, self._drop, self._firing, system=self._environment.system, show_type=self._show_type
        )
        self._session = Session(device, self._machine.guest, self._output, handlers)
        options = self._session.options
        options.set("bufsize", _BUFFER)
        options.set("aggsize", _BUFFER)
        options.set("temporal", "1")
        for setting in self._request.settings:
            try:
                options.set(setting.name, setting.value)
            except OptionError as error:
                self._fail(f"failed to set {setting.flag}: {error}")
        symbols = self._session.symbols
        symbols.lines = options.is_set("lines")
        if options.is_set("demangle"):
            try:
                symbols.spell = demangler()
            except DemanglingError as error:
                self._fail(str(error))
        if self._request.export is not None:
            title = " ".join(self._request.machine.commands) or "dtrace"
            isa = self._machine.guest.isa.name
            from trapline.consumer.export import Exporter  # noqa: PLC0415  few commands export

            try:
                self._exporter = Exporter(self._request.export, self._request.export_format, title, isa)
            except ExportError as error:
                self._fail(str(error))
        self._describer = Describer(
            device, self._output, as_json=jsonlines.wanted(options), verbose=self._request.verbose
        )
        machine, report = self._machine, self._messages.write
        self._compiler = Compiler(
            self._session, self._request, machine.target, machine.provide, report, machine.foreign, machine.libraries
        )

    def _load_libraries(self) -> None:
        try:
            self._compiler.load_given_libraries()
        except OSError as error:
            self._fail(f"failed to open {error.filename}: {error.strerror}")
        except CompileError as error:
            self._fail(f"failed to load libraries: {error.text(errtags=self._session.options.is_set('errtags'))}")

    def _compile(self, source: Source) -> Compiled:
        try:
            program = self._compiler.compile(source)
        except OSError as error:
            self._fail(f"failed to open {source.text}: {error.strerror}")
        except GuestError as error:
            self._fail(error.report())
        except CompileError as error:
            text = error.text(errtags=self._session.options.is_set("errtags"))
            what = "failed to compile script" if source.kind == "script" else "invalid probe specifier"
            self._fail(f"{what} {source.text}: {text}")
        self._write_types()
        if self._exporter is not None:
            program = self._exporter.prepare(program, self._compiler)
        if self._request.disassemble:
            from trapline.d.codegen.disassemble import disassemble_program  # noqa: PLC0415  few commands show it

            strsize = self._session.options.number("strsize", STRING_SIZE)
            self._messages.write(disassemble_program(program, strsize))
            if self._session.options.is_set(_MACHINE_CODE):
                self._list_machine_code(program)
        return Compiled(source, program)

    def _write_types(self) -> None:
        """Write the containers of types, as far as programs are compiled (options ctypes, dtypes)."""
        options = self._session.options
        wanted = [name for name in _CONTAINERS if options.is_set(name)]
        if not wanted:
            return
        from trapline.types.ctf_writer import containers  # noqa: PLC0415  few commands write types

        data = dict(zip(_CONTAINERS, containers(self._compiler.names), strict=True))
        for name in wanted:
            path = options.text(name)
            try:
                Path(path).write_bytes(data[name])
            except OSError as error:
                self._fail(f"failed to set -x {name}: {path}: {error.strerror}")

    def _list_machine_code(self, program: Program) -> None:
        if self._environment.machine_code is None:
            self._fail("-x machinecode needs llvmlite: pip install llvmlite")
        options = self._session.options
        given = {name: options.number(name) for name in _OF_RECORDS if options.is_set(name)}
        lines = self._environment.machine_code(program, given)
        self._messages.write("".join(f"{line}\n" for line in lines))

    def _open_output(self) -> None:
        path = self._request.output
        if path is None:
            return
        try:
            self._file = open_for_append(path)
        except OSError as error:
            self._fail(f"failed to open output file '{path}': {error.strerror}")
        self._output.replace(self._file)

    # Saving

    def _save(self, mode: Mode, compiled: Sequence[Compiled]) -> int:
        """Write the programs to a file, as -h, -G and -A want them."""
        from trapline.consumer.program.save import save  # noqa: PLC0415  few commands save

        try:
            for line in save(
                mode,
                compiled,
                self._session.options,
                self._compiler.names.providers,
                self._machine.guest.isa,
                self._request.output,
            ):
                self._say(line)
        except SavingError as error:
            self._fail(str(error))
        return SUCCESS

    def _list(self, compiled: Sequence[Compiled]) -> int:
        if not jsonlines.wanted(self._session.options):
            self._output.write(HEADING)
        device = self._session.device
        if not compiled:
            self._describer.every_probe()
        for one in compiled:
            for pattern in self._describer.matching(one):
                quiet = self._session.options.is_set("verbose_ioctl")
                hint = "" if quiet else why_none(pattern, device.why_none, device.probes)
                self._say(f"failed to match {pattern}: No probe matches description{hint}")
        self._output.flush()
        return SUCCESS

"""The pytest plugin: checks as tests, and fixtures for other test suites.

    pytest --trapline-check        runs the checks in the ini option `trapline_check`, one per line,
                                   with the arguments of `trapline check`; each is a test

Fixtures: `trapline_isa`, `trapline_machine`, `trapline_patcher`, `trapline_function`,
`trapline_assemble`, `assert_same_with_probe`.  Trapline is imported only when it is needed: a test
suite that does not use the plugin loses no time.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from emu.guest.function import FunctionGuest
    from emu.isa import Isa
    from emu.probe.patcher import Patcher
    from trapline.machine.kernel_machine import KernelMachine


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("trapline", "Trapline: probes in running code")
    group.addoption("--trapline-check", action="store_true", help="run the checks that trapline_check lists, as tests")
    group.addoption("--trapline-isa", action="append", metavar="ISA", help="check only this ISA (may be repeated)")
    parser.addini(
        "trapline_check", "the checks of --trapline-check: arguments of `trapline check`, one line each", "linelist"
    )


def _isas(config: pytest.Config) -> list[str]:
    """Return the selected ISAs.  Raises `pytest.UsageError`."""
    from emu.isa import ISAS  # noqa: PLC0415

    wanted: list[str] = config.getoption("--trapline-isa") or list(ISAS)
    for name in wanted:
        if name not in ISAS:
            raise pytest.UsageError(f"--trapline-isa {name}: supported are {', '.join(ISAS)}")
    return wanted


# -- checks as tests


def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for each line of `trapline_check`.

    Raises `pytest.UsageError` if there is none.
    """
    if not config.getoption("--trapline-check"):
        return
    lines = config.getini("trapline_check")
    if not lines:
        raise pytest.UsageError(
            "--trapline-check: nothing to check; list it in the ini option trapline_check, such as "
            "'testbins:kernel --isa riscv64' or './build/prog --every-instruction'"
        )
    items.extend(CheckItem.from_parent(session, name=f"trapline check {one}", words=shlex.split(one)) for one in lines)


class CheckFailedError(Exception):
    """A check found a difference; the text is the report."""


class CheckItem(pytest.Item):
    """One `trapline check`."""

    def __init__(self, *, words: list[str], **options: Any) -> None:
        super().__init__(**options)
        self._words = words
        self.add_marker("trapline")

    def runtest(self) -> None:
        """Check as the command does.  Raises `CheckFailedError` where that exits with 1 or 2."""
        from trapline.commands.check import options_of, perform  # noqa: PLC0415

        performed = perform(options_of(self._words))
        if performed.status:
            raise CheckFailedError(performed.text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Show the report, or the line that says why nothing could be checked; no traceback."""
        import click  # noqa: PLC0415

        if isinstance(excinfo.value, click.ClickException):
            return excinfo.value.format_message()
        if isinstance(excinfo.value, CheckFailedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where the check is from."""
        return self.config.inipath or self.path, None, self.name


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker.  Raises `pytest.UsageError` for an ISA that is not."""
    if config.getoption("--trapline-isa"):
        _isas(config)
    config.addinivalue_line("markers", "trapline: a check that --trapline-check has added")


# -- fixtures


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests that use `trapline_isa`, directly or not, once for each ISA."""
    if "trapline_isa" in metafunc.fixturenames:
        metafunc.parametrize("trapline_isa", _isas(metafunc.config), indirect=True)


@pytest.fixture
def trapline_isa(request: pytest.FixtureRequest) -> Isa:
    """Yield one ISA after another."""
    from emu.isa import ISAS  # noqa: PLC0415

    return ISAS[request.param]


@pytest.fixture
def trapline_machine(trapline_isa: Isa) -> KernelMachine:
    """Boot a new kernel guest for each test, with the framework and the providers over it."""
    from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest  # noqa: PLC0415

    return boot(kernel_guest(KernelOptions(isa=trapline_isa)))


@pytest.fixture
def trapline_patcher(trapline_machine: KernelMachine) -> Iterator[Patcher]:
    """Lend the patcher of a booted kernel guest; the test must leave every byte as it was."""
    guest = trapline_machine.guest
    text = guest.image.segments[0]
    before = guest.engine.read(text.vaddr, len(text.data))
    yield guest.patcher
    guest.patcher.restore_all()
    assert guest.engine.read(text.vaddr, len(text.data)) == before, "the kernel's text is not what it was"


@pytest.fixture
def trapline_function(trapline_isa: Isa) -> Callable[[bytes | str | Path], FunctionGuest]:
    """Make a function guest of machine code, or of an ELF file by its path."""
    from emu.elf.image import Image  # noqa: PLC0415
    from emu.guest.function import FunctionGuest  # noqa: PLC0415

    def make(code: bytes | str | Path) -> FunctionGuest:
        return FunctionGuest(trapline_isa, code if isinstance(code, bytes) else Image(code, isa=trapline_isa))

    return make


@pytest.fixture
def trapline_assemble(trapline_isa: Isa) -> Callable[..., bytes]:
    """Assemble text to machine code for a function guest: `trapline_assemble("ret")`."""
    from emu.assembly import machine_code  # noqa: PLC0415
    from emu.guest.function import CODE  # noqa: PLC0415

    return lambda text, address=CODE: machine_code(trapline_isa, text, address)


@pytest.fixture
def assert_same_with_probe() -> Callable[..., None]:
    """Assert that a function is the same with probes.

    `assert_same_with_probe("fib", 10, program="build/prog")`, or of assembly
    `assert_same_with_probe("push rbp; mov rbp, rsp; pop rbp; ret")`
    """
    from trapline.lab.check.runner.assertion import assert_same_with_probe as assertion  # noqa: PLC0415

    return assertion

"""The cells of docs/isas.md, compared with the ports and ISAs."""

import re
from itertools import dropwhile, takewhile

import pytest

from emu.displaced.decision import Code, Emulated, OutOfLine, Refused, Stepped
from emu.elf.image import Image
from emu.engine import native_callbacks
from emu.guest.function import FunctionGuest
from emu.guest.kernel.boot import images
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from emu.isa.disassembly import disassemble
from emu.isa.relocations import relocations_of
from emu.probe.trap_frames import LiveFrame
from providers.fasttrap import PORTS as FASTTRAP
from providers.fbt import ENTRY, RETURN
from providers.fbt import PORTS as FBT
from providers.fbt.port import Function
from providers.fidelity import Fidelity
from providers.kinst.kinst import PORTS as KINST
from providers.linux_kernel.port import PORTS as KERNELS
from providers.uprobes import PORTS as UPROBES
from tests.emu.isa.checklist import ROOT


def matrix():
    """The page's first table."""
    lines = dropwhile(lambda line: not line.startswith("|"), (ROOT / "docs" / "isas.md").read_text().splitlines())
    rows = takewhile(lambda line: line.startswith("|"), lines)
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    isas = cells[0][1:]
    return {row[0]: dict(zip(isas, row[1:], strict=True)) for row in cells[2:]}


MATRIX = matrix()
isas = pytest.mark.parametrize("isa", ISAS)
NOPS = {"x86_64": "90", "i386": "90", "aarch64": "1f2003d5", "riscv64": "13000000"}
RETURNS = {"x86_64": "c3", "i386": "c3", "aarch64": "c0035fd6", "riscv64": "8280"}
# Phrases of the rows about the pid provider -> instructions that they are about.
PID = {
    "x86_64": {
        "branches": ["7410", "0f8410000000", "eb10", "e910000000", "ffe0"],
        "calls": ["e810000000", "ffd0"], "returns": ["c3", "c20800"], "`loop`": ["e210"], "`jrcxz`": ["e310"],
        "`push rbp`": ["55"], "`nop`": ["90"], "`int3`": ["cc"], "`int n`": ["cd80"],
        "two segment prefixes": ["64658b00"], "far calls": ["ff18"], "branches with `66`": ["66e810000000"],
        "everything else": ["4889e5", "8b0510000000", "0f05", "660f6f00"],
    },
    "i386": {
        "branches": ["7410", "0f8410000000", "eb10", "e910000000", "ffe0"],
        "calls": ["e810000000", "ffd0"], "returns": ["c3", "c20800"], "`loop`": ["e210"], "`jecxz`": ["e310"],
        "`push ebp`": ["55"], "`nop`": ["90"], "`int3`": ["cc"], "other `int n`": ["cd81"],
        "two segment prefixes": ["64658b00"], "far calls": ["ff18"], "branches with `66`": ["66e810000000"],
        "counting and indirect ones with `67`": ["67e210", "67ff20"],
        "everything else": ["89e5", "a110000000", "660f6f00"], "`int $0x80` too": ["cd80"],
    },
    "aarch64": {
        "what names the pc or branches": ["14000010", "94000010", "54000080", "b4000080", "36000080", "10000080",
                                          "90000080", "58000080", "d65f03c0", "d63f0000"],
        "the standard `stp`": ["a9bf7bfd"], "exclusives and what is between them": ["c85f7c00", "c8027c01"],
        "everything else": ["8b020020", "f9400020", "d4000001", "910003fd"],
    },
    "riscv64": {
        "what names the pc or branches": ["0100006f", "010000ef", "00b50863", "00000517", "00008067"],
        "`lr`": ["1005252f"], "`sc` and what is between them": ["18b5252f"],
        "everything else": ["00b50533", "00053503", "00000073"],
    },
}  # fmt: skip
WANTED = {"emulated": Emulated, "out of line": OutOfLine, "refused": Refused}


def sizes(cell):
    """The lengths in bytes that a cell names: `brk` (4), `int3` (1 byte)."""
    return {int(number) for number in re.findall(r"\((\d) ?(?:bytes?)?\)", cell)}


def code_of(isa, text):
    data = bytes.fromhex(text)
    return data[::-1] if ISAS[isa].instruction_alignment > 1 else data


@isas
def test_breakpoints_have_the_lengths_that_are_reported(isa):
    assert sizes(MATRIX["breakpoint a tracepoint writes"][isa]) == {len(ISAS[isa].traps.breakpoints[0])} | {
        len(one) for one in ISAS[isa].traps.breakpoints if isa != "i386"
    }
    lengths = (1,) if ISAS[isa].instruction_alignment == 1 else (2, 4) if ISAS[isa].instruction_alignment == 2 else (4,)
    assert sizes(MATRIX["pid provider: breakpoint"][isa]) == {len(FASTTRAP[isa].breakpoint(n)) for n in lengths}
    if isa in KINST:
        assert sizes(MATRIX["kinst: breakpoint"][isa]) == {len(KINST[isa].patch(n)) for n in lengths}


@isas
def test_kinst_is_there_where_the_rows_say_what_it_does(isa):
    has = [MATRIX[row][isa] for row in ("kinst: breakpoint", "kinst: emulated", "kinst: in a trampoline")]
    assert (isa in KINST) is ("--" not in has)
    assert (isa in KINST) is ("no kinst" not in has[0])


@isas
def test_a_trampoline_ends_as_the_row_says(isa):
    cell = MATRIX["kinst: in a trampoline"][isa]
    if isa in KINST:
        assert ("second breakpoint" in cell) is (KINST[isa].trap is not None)
        assert ("jump back" in cell) is (KINST[isa].trap is None)
    cell = MATRIX["pid provider: out of line"][isa]
    assert ("second breakpoint" in cell) is FASTTRAP[isa].always_steps
    assert ("jump back" in cell) is not FASTTRAP[isa].always_steps


@isas
def test_linux_kernels_are_guests_where_there_is_a_machine_for_them(isa):
    cell = MATRIX["unmodified Linux kernels as guests: their boot, fbt, kinst, tracepoints, uprobes"][isa]
    assert (cell == "yes") is (isa in BOARDS) is (isa in KERNELS)
    assert cell in {"yes", "no machine for them"}


@isas
def test_sdt_writes_what_the_row_says(isa):
    rest, enabled = MATRIX["SDT: a site at rest, and enabled"][isa].rsplit(", ", 1)
    jump, site = ISAS[isa].jump, ISAS[isa].kernel_start
    nops = jump.nop
    assert len(nops) == len(jump.patch(site, site + 64))
    assert "nop" in rest
    assert ISAS[isa].instruction_length(nops) == len(nops)
    assert f"({len(nops)} bytes)" in rest or len(nops) == 4
    shown = next(disassemble(ISAS[isa], jump.patch(site, site + 64), site)).text
    # Capstone calls `jal x0` by its other name.
    assert enabled.strip("`").split()[0] == {"j": "jal"}.get(shown.split()[0], shown.split()[0])


@isas
def test_an_illumos_kernel_is_built_where_the_row_says_yes(isa):
    assert images.kernel(ISAS[isa], "sdt-2005").exists() is (
        MATRIX["SDT as illumos has it: LOCK over a nop"][isa] == "yes"
    )


@isas
def test_a_step_of_a_uprobe_ends_as_the_row_says(isa):
    cell = MATRIX["uprobes and return probes, as Linux 6.12 has them"][isa]
    assert ("trap flag" in cell) is (UPROBES[isa].step_trap == b"")


@isas
@pytest.mark.parametrize("kind", WANTED)
def test_the_pid_provider_does_with_each_instruction_what_its_row_says(isa, kind):
    cell = MATRIX[f"pid provider: {kind}"][isa]
    told = [phrase.strip() for phrase in cell.split(", ")]
    known = PID[isa]
    assert [phrase for phrase in told if phrase in known], cell
    for phrase in told:
        for text in known.get(phrase, ()):
            treated = FASTTRAP[isa].treat(Code(code_of(isa, text), 0x10000), Fidelity.EXACT)
            assert isinstance(treated, WANTED[kind]), f"{phrase}: {text} is {treated}"


@isas
def test_every_phrase_that_is_tested_is_reported(isa):
    cells = ", ".join(MATRIX[f"pid provider: {kind}"][isa] for kind in WANTED)
    assert [phrase for phrase in PID[isa] if phrase not in cells] == []


@isas
def test_encodings_are_swept_as_the_row_says(isa):
    told = MATRIX["`trapline check --encodings`"][isa]
    assert told == ("by class" if ISAS[isa].instruction_alignment == 1 else "every one")


def test_uprobes_step_or_emulate_or_refuse_with_an_errno():
    treated = UPROBES["x86_64"].treat(Code(bytes.fromhex("4889e5"), 0x10000), Fidelity.EXACT)
    assert isinstance(treated, Stepped)


# -- FBT: a phrase of the cell -> a function, and the offsets of the sites that it has

FBT_ENTRIES = {
    "x86_64": {"`push rbp`, wherever it is": [("554889e55dc3", 0), ("90905548 89e55dc3", 2)]},
    "i386": {"`push ebp; mov ebp, esp`, first": [("5589e55dc3", 0), ("905589e55dc3", None)]},
    "aarch64": {
        "`stp ..., [sp, #-n]!`": [("fd7bbfa9 fd030091 fd7bc1a8 c0035fd6", 0)],
        "`sub sp`": [("ff4300d1 ff430091 c0035fd6", 0)],
        "`nop` first": [("1f2003d5 00008052 c0035fd6", 0)],
    },
    "riscv64": {
        "`sd ra`": [("130101ff 23341100 83308100 13010101 67800000", 4)],
        "`c.sdsp ra`": [("4111 06e4 a260 4101 8280", 2)],
    },
}
FBT_RETURNS = {
    "x86_64": {"`ret`": [("554889e55dc3", {5})]},
    "i386": {"`pop ebp` or `leave` before a `ret`": [("5589e55dc3", {3}), ("5589e5c9c3", {3}), ("5589e5c3", set())]},
    "aarch64": {
        "`ret`": [("fd7bbfa9 fd030091 fd7bc1a8 c0035fd6", {12})],
        "forward `b` out of the function": [
            ("fd7bbfa9 fd7bc1a8 40000014", {8}), ("fd7bbfa9 fd7bc1a8 f0ffff17", set()),
        ],
    },
    "riscv64": {
        "`ret`": [("130101ff 23341100 83308100 13010101 67800000", {16})],
        "`c.jr ra`": [("4111 06e4 a260 4101 8280", {8})],
    },
}  # fmt: skip


def scanned(isa, text):
    code, start = bytes.fromhex(text), ISAS[isa].kernel_start
    return start, FBT[isa].scan(Function("probed", start, len(code), code)).sites


@isas
def test_fbt_finds_the_entry_that_the_row_tells(isa):
    told = FBT_ENTRIES[isa]
    assert ", ".join(told) == MATRIX["FBT entry sites"][isa]
    for text, offset in [case for cases in told.values() for case in cases]:
        start, sites = scanned(isa, text)
        found = [site.address - start for site in sites if site.probe == ENTRY]
        assert found == ([] if offset is None else [offset]), text


@isas
def test_fbt_finds_the_returns_that_the_row_tells(isa):
    told = FBT_RETURNS[isa]
    assert ", ".join(told) == MATRIX["FBT return sites"][isa]
    for text, offsets in [case for cases in told.values() for case in cases]:
        start, sites = scanned(isa, text)
        assert {site.address - start for site in sites if site.probe == RETURN} == offsets, text


@isas
def test_arguments_after_the_fifth_come_from_where_the_rows_say(isa):
    guest = FunctionGuest(ISAS[isa], bytes.fromhex(RETURNS[isa]))
    stack = guest.allocate(b"".join(number.to_bytes(ISAS[isa].word, "little") for number in range(100, 110)))
    guest.engine.write_register(ISAS[isa].registers.sp, stack)
    for number, name in enumerate(ISAS[isa].calling.arguments):
        guest.engine.write_register(name, 50 + number)
    frame = LiveFrame(guest.engine)
    skipped = ISAS[isa].calling.stack_arguments // ISAS[isa].word
    expected = {
        "0, as FreeBSD gives": [0, 0],
        "registers, then the stack": [55, 100 + skipped],
        "the stack": [105 + skipped, 106 + skipped],
    }
    assert [frame.argument(5), frame.argument(6)] == expected[MATRIX["`arg5` and up at an FBT entry"][isa]]
    port = FASTTRAP[isa]
    told = re.findall(r"`(\w+)`", MATRIX["`arg5` and up at a pid entry"][isa])
    late = port.late_arguments
    assert told == ([] if not late else [late[0]] if len(late) == 1 else [late[0], late[-1]])
    assert port.stack_skip == skipped


def test_pid_probes_run_vector_operands_relative_to_rip_out_of_line_through_a_register():
    assert "vector" not in MATRIX["pid provider: refused"]["x86_64"]
    for text in ("c5f8100510000000", "c4e279180510000000", "62f17c48100510000000", "0f100510000000"):
        treated = FASTTRAP["x86_64"].treat(Code(bytes.fromhex(text), 0x10000), Fidelity.EXACT)
        assert isinstance(treated, OutOfLine), text
        assert treated.scratch, text
        assert len(treated.code) == len(bytes.fromhex(text))


# -- the plain rows: what has to be there for a "yes"


def counts_alike(isa):
    code = bytes.fromhex(NOPS[isa] * 7 + RETURNS[isa])
    guests = [
        FunctionGuest(ISAS[isa], code, accelerated=accelerated) for accelerated in {False, native_callbacks.available()}
    ]
    for guest in guests:
        guest.call()
    return {guest.engine.instructions for guest in guests} == {9}


def carries_out_natively(isa):
    emulated = next(texts for phrase, texts in PID[isa].items() if phrase in MATRIX["pid provider: emulated"][isa])
    treated = FASTTRAP[isa].treat(Code(code_of(isa, emulated[-1]), 0x10000), Fidelity.EXACT)
    engine = FunctionGuest(ISAS[isa], bytes.fromhex(RETURNS[isa])).engine
    return isinstance(treated, Emulated) and (bool(engine.plan(treated.plan)) or not engine.accelerated)


def defines(*names):
    return lambda isa: all(Image(images.built(ISAS[isa]) / "kernel").defines(name) for name in names)


def has(*paths):
    return lambda isa: set(paths) <= set(images.programs(ISAS[isa]))


def modules(*names):
    return has(*(f"boot/kernel/{name}.ko" for name in names))


def sdt_kernels(isa):
    return all(images.kernel(ISAS[isa], name).exists() for name in ("sdt-2013", "sdt-2018"))


def has_linux(isa):
    return ISAS[isa].linux is not None and all(images.linux(ISAS[isa], name).exists() for name in ("zoo", "zoo-dyn"))


def data_model(isa):
    word = "ILP32" if ISAS[isa].word == 4 else "LP64"
    told = MATRIX["D: the kernel's types and symbols, `args[]`, `uregs[]`, the library"][isa]
    return ("ILP32" in told) is (word == "ILP32") and (ROOT / "trapline" / "dlib" / isa / "regs.d").exists()


YES = {
    "kernel guest: paging, user mode, system calls, clock": defines("syscall", "hardclock"),
    "function guest": lambda isa: FunctionGuest(ISAS[isa], bytes.fromhex(RETURNS[isa])).call() is not None,
    "exact instruction counts, native and Python": counts_alike,
    "host trap path": lambda isa: bool(FBT[isa].handler),
    "guest trap path": defines("dtrace_invop", "dtrace_probe"),
    "displaced instructions carried out by native code": carries_out_natively,
    "kernel stacks, `regs[]`, time: equal on both trap paths": lambda isa: bool(ISAS[isa].traps.frame),
    "SDT as FreeBSD had it before: id tested, flag tested": sdt_kernels,
    "`args[5]` of a static probe": sdt_kernels,
    "`trapline lockstat`": defines("lockstat_enabled"),
    "kernel guest's programs: shared libraries, run-time linker, threads":
        has("lib/libc.so.7", "lib/libthr.so.3", "libexec/ld-elf.so.1"),
    "pid probes and USDT by DOF in them, equal on both trap paths; `trapline plockstat`": modules("fasttrap"),
    "the guest's own `dtrace(1)`, by the requests of `/dev/dtrace/dtrace`": has("sbin/dtrace"),
    "Linux guest: static and dynamic programs, processes, threads, signals": has_linux,
    "kernel modules, syscall, dtmalloc": modules("echo", "systrace", "dtmalloc"),
    "USDT markers as D probes, semaphores": lambda isa: bool(FASTTRAP[isa].results),
    "uprobes and return probes, as Linux 6.12 has them": lambda isa: bool(UPROBES[isa].breakpoint),
    "`trapline uprobe`, `trapline usdt`": lambda isa: bool(ISAS[isa].linux.probe_registers),
    "`profile-N`, `tick-N` in the guest's own time": modules("profile"),
    "D: the kernel's types and symbols, `args[]`, `uregs[]`, the library": data_model,
    "`trapline sites`, `trapline step`, `trapline dtrace`, `trapline check`, `assert_same_with_probe`":
        lambda isa: isa in FBT and isa in FASTTRAP and isa in UPROBES,
    "`trapline race`, `trapline bench`, `trapline displace`, `trapline check --object`":
        lambda isa: bool(ISAS[isa].fetching.block and relocations_of(ISAS[isa]).types),
}  # fmt: skip
# Rows that the tests above ask about by their own words.
OTHERS = {
    "breakpoint a tracepoint writes", "FBT entry sites", "FBT return sites", "`arg5` and up at an FBT entry",
    "SDT: a site at rest, and enabled", "SDT as illumos has it: LOCK over a nop",
    "kinst: breakpoint", "kinst: emulated", "kinst: in a trampoline", "pid provider: breakpoint",
    "pid provider: emulated", "pid provider: out of line", "pid provider: refused", "`arg5` and up at a pid entry",
    "`trapline check --encodings`",
    "unmodified Linux kernels as guests: their boot, fbt, kinst, tracepoints, uprobes",
}  # fmt: skip
# Rows that other tests hold: counters in tests/emu/engine, DOF in tests/providers/dof, cpc in tests/providers/cpc.
ELSEWHERE = {
    "counters and random numbers of the CPU, from virtual time and a seed",
    "arguments of a probe made known by DOF",
    "pid provider: follows",
    "`cpc:::EVENT-MODE-N`: instructions, loads, stores, branches; exact",
}


@isas
@pytest.mark.parametrize("row", YES)
def test_a_yes_is_true(row, isa):
    assert MATRIX[row][isa].startswith("yes")
    assert YES[row](isa)


def test_no_row_is_left_out():
    assert set(MATRIX) == set(YES) | OTHERS | ELSEWHERE

"""Uprobes on real programs: handlers, returns, filters, counters, and the program unchanged."""

import contextlib

import pytest

from emu.displaced.decision import Code, Refused
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from providers import fasttrap
from providers.fidelity import Fidelity
from providers.uprobes import PORTS, Consumer, HandlerResult, UprobeError, Uprobes
from providers.uprobes.port import ENOTSUPP
from tests.emu.guest.linux.support import expected, start, zoo
from tests.support import small_elf
from trapline.lab.check.cpu.cpu import Stretch, TrialCpu
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import POOL
from trapline.lab.check.prober.probers import UprobeProber
from trapline.lab.check.site.compare import Outcome, SiteChecker
from trapline.machine.linux_machine import EvalTime

ADDRESS = 0x40_0000


def prepared(isa, case):
    machine, output = start(isa, [images.linux(ISAS[isa], "zoo"), case], evaltime=EvalTime.EXEC)
    uprobes = Uprobes(machine.guest.kernel)
    loaded = machine.guest.objects.of(machine.guest.kernel.first)[0]
    return machine.guest, uprobes, loaded, output


def offset_of(loaded, name):
    return loaded.image.offset_of(loaded.image.symbol(name).value)


def finish(guest, output):
    guest.run(None)
    return output.decode() + f"exit {guest.exit_status}\n"


@pytest.mark.parametrize("isa", ISAS)
def test_two_handlers_see_a_function_begin_and_return(isa):
    """The published sample: a module with two consumers, messages on entry and return."""
    guest, uprobes, loaded, output = prepared(isa, "recursion")
    seen = []
    result = guest.isa.registers.slots[guest.isa.calling.results[0]]
    first = Consumer(handler=lambda frame: seen.append("first"))
    second = Consumer(
        handler=lambda frame: seen.append("second"),
        ret_handler=lambda function, frame: seen.append(("returned", guest.engine.words[result])),
    )
    offset = offset_of(loaded, "fib")
    for consumer in (first, second):
        probe = uprobes.register(loaded.file, offset, consumer)
    assert probe.references == 2
    assert finish(guest, output) == expected("recursion", isa)
    calls = seen.count("first")
    assert calls == seen.count("second") > 100
    assert seen[:2] == ["second", "first"]
    assert sum(1 for one in seen if one[0] == "returned") == calls
    assert ("returned", 55) in seen
    uprobes.unregister(probe, first)
    uprobes.unregister(probe, second)
    assert not uprobes._books.probes


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", ["tailcalls", "cxx", "threads", "processes", "signals", "asm"])
def test_with_every_function_watched_a_program_is_the_same(isa, case):
    guest, uprobes, loaded, output = prepared(isa, case)
    count = [0]

    def hit(_frame):
        count[0] += 1

    for symbol in loaded.functions():
        with contextlib.suppress(UprobeError):
            uprobes.register(loaded.file, loaded.image.offset_of(symbol.value), Consumer(handler=hit))
    assert finish(guest, output) == expected(case, isa)
    assert guest.engine.instructions == zoo(isa, case).instructions
    assert count[0] > 100


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", ["recursion", "tailcalls", "threads"])
def test_with_every_return_watched_a_program_is_the_same(isa, case):
    guest, uprobes, loaded, output = prepared(isa, case)
    entered, returned = [0], [0]

    def hit(_frame):
        entered[0] += 1

    def back(_function, _frame):
        returned[0] += 1

    for symbol in loaded.functions():
        # i386's thunks read their return address: what they are called for is to be told where the caller is.
        if "jmp" in symbol.name or "get_pc_thunk" in symbol.name:
            continue
        if symbol.name not in {"_start", "__clone", "clone", "__clone3"}:
            try:
                uprobes.register(loaded.file, loaded.image.offset_of(symbol.value), Consumer(hit, back))
            except UprobeError:
                continue
    assert finish(guest, output) == expected(case, isa)
    assert entered[0] * 0.9 < returned[0] <= entered[0]


@pytest.mark.parametrize("isa", ISAS)
def test_a_tail_call_returns_for_its_caller_too(isa):
    guest, uprobes, loaded, output = prepared(isa, "tailcalls")
    names = [symbol.name for symbol in loaded.functions() if "tail" in symbol.name]
    log = []
    for name in names:
        uprobes.register(
            loaded.file,
            offset_of(loaded, name),
            Consumer(
                handler=lambda _frame, name=name: log.append(("in", name)),
                ret_handler=lambda _function, _frame, name=name: log.append(("out", name)),
            ),
        )
    assert finish(guest, output) == expected("tailcalls", isa)
    for name in names:
        assert log.count(("in", name)) == log.count(("out", name))


@pytest.mark.parametrize("isa", ISAS)
def test_a_semaphore_is_counted_once_for_each_probe_and_process(isa):
    from emu.elf.stapsdt import markers

    guest, uprobes, loaded, output = prepared(isa, "markers")
    marker = next(one for one in markers(loaded.image) if one.semaphore)
    consumer = Consumer(handler=lambda _frame: None)
    counter = loaded.image.offset_of(marker.semaphore)
    probe = uprobes.register(loaded.file, loaded.image.offset_of(marker.location), consumer, counter)
    space = guest.kernel.first.space
    assert space.peek(marker.semaphore + loaded.bias, 2) == b"\1\0"
    with pytest.raises(UprobeError, match="another reference counter"):
        uprobes.register(loaded.file, probe.offset, Consumer(handler=lambda _frame: None), counter + 2)
    uprobes.unregister(probe, consumer)
    assert space.peek(marker.semaphore + loaded.bias, 2) == b"\0\0"
    assert "somebody listens" not in finish(guest, output)


@pytest.mark.parametrize("isa", ISAS)
def test_unregistering_leaves_the_text_as_it_was(isa):
    guest, uprobes, loaded, _output = prepared(isa, "recursion")
    symbol = loaded.image.symbol("fib")
    space = guest.kernel.first.space
    before = space.peek(symbol.value, symbol.size)
    consumer = Consumer(handler=lambda _frame: None)
    probe = uprobes.register(loaded.file, loaded.image.offset_of(symbol.value), consumer)
    assert space.peek(symbol.value, symbol.size) != before
    uprobes.unregister(probe, consumer)
    assert space.peek(symbol.value, symbol.size) == before


def test_the_file_and_other_processes_never_see_the_breakpoint():
    _guest, uprobes, loaded, _output = prepared("x86_64", "recursion")
    offset = offset_of(loaded, "fib")
    uprobes.register(loaded.file, offset, Consumer(handler=lambda _frame: None))
    assert loaded.file.read(offset, 1) != b"\xcc"


def test_a_filter_says_which_processes_are_watched():
    guest, uprobes, loaded, output = prepared("x86_64", "recursion")
    seen = []
    uprobes.register(
        loaded.file, offset_of(loaded, "fib"), Consumer(handler=seen.append, filter=lambda process: process.pid == 1)
    )
    assert finish(guest, output) == expected("recursion", "x86_64")
    assert not seen


def test_a_handler_that_says_remove_is_heard_where_no_filter_wants_the_process():
    guest, uprobes, loaded, output = prepared("x86_64", "recursion")
    wanted, seen = [True], []

    def once(_frame):
        seen.append(1)
        wanted[0] = False
        return HandlerResult.REMOVE

    uprobes.register(loaded.file, offset_of(loaded, "fib"), Consumer(handler=once, filter=lambda _process: wanted[0]))
    assert finish(guest, output) == expected("recursion", "x86_64")
    assert len(seen) == 1


@pytest.mark.parametrize("isa", ISAS)
def test_refusals_carry_the_kernels_numbers(isa):
    _guest, uprobes, loaded, _output = prepared(isa, "recursion")
    consumer = Consumer(handler=lambda _frame: None)
    for offset, counter, errno in ((loaded.file.size + 1, 0, 22), (offset_of(loaded, "fib"), 3, 22)):
        with pytest.raises(UprobeError) as caught:
            uprobes.register(loaded.file, offset, consumer, counter)
        assert caught.value.errno == errno
    with pytest.raises(UprobeError, match="needs a handler"):
        uprobes.register(loaded.file, 0, Consumer())
    assert not uprobes._books.probes


@pytest.mark.exhaustive
@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", ["asm", "recursion", "setjmp", "args", "cxx"])
def test_with_every_instruction_of_its_own_functions_watched_a_program_is_the_same(isa, case):
    guest, uprobes, loaded, output = prepared(isa, case)
    count, refused = [0], 0

    def hit(_frame):
        count[0] += 1

    own = ("asm_", "fib", "ackermann", "is_", "arg", "greet", "case_", "factorial", "say", "descend", "_Z")
    consumer = Consumer(handler=hit)
    for symbol in loaded.functions():
        if symbol.name.startswith(own):
            for offset in fasttrap.PORTS[isa].boundaries(loaded.image.code(symbol)):
                try:
                    uprobes.register(loaded.file, loaded.image.offset_of(symbol.value + offset), consumer)
                except UprobeError:
                    refused += 1
    assert finish(guest, output) == expected(case, isa)
    # rep is stepped an iteration at a time, the last of which has nothing to do
    if (isa, case) not in {("x86_64", "asm"), ("i386", "cxx")}:
        assert guest.engine.instructions == zoo(isa, case).instructions
    assert count[0] > 100
    assert refused < 200


@pytest.mark.parametrize(
    "code",
    [
        "9c",  # pushfq
        "669c",  # pushfw
        "9d",  # popfq
        "669d",  # popfw
        "b09c",  # movb $0x9c, %al
        "b09d",  # movb $0x9d, %al
    ],
)
def test_the_flag_that_steps_a_copy_is_not_visible(code):
    """Not by a pushf, not after a popf that faults; and an operand that looks like either is none."""
    text = [Stretch(ADDRESS, bytes.fromhex(code) + bytes(16))]
    plain, patched = (TrialCpu(ISAS["x86_64"], text, stepping=stepping) for stepping in (True, False))
    checker = SiteChecker(plain, patched, UprobeProber(patched, ADDRESS + (1 << 20), Rules()), states=POOL)
    result = checker.check(CheckSite(ADDRESS, text[0].data))
    assert result.outcome is Outcome.AGREED, result
    assert result.why.startswith("stepped")


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("4848ffc0", Outcome.AGREED),  # inc %rax
        ("484855", Outcome.AGREED),  # push %rbp
        ("4848e800000000", Outcome.DIVERGED),  # call: the return address is that of the copy
        ("48488d0500000000", Outcome.DIVERGED),  # lea 0(%rip), %rax: the copy's rip
    ],
)
def test_linux_steps_what_follows_a_second_rex_at_another_place(code, outcome):
    text = [Stretch(ADDRESS, bytes.fromhex(code) + bytes(16))]
    for fidelity, wanted in ((Fidelity.EXACT, Outcome.AGREED), (Fidelity.LINUX, outcome)):
        plain, patched = (TrialCpu(ISAS["x86_64"], text, stepping=stepping) for stepping in (True, False))
        prober = UprobeProber(patched, ADDRESS + (1 << 20), Rules(fidelity=fidelity))
        result = SiteChecker(plain, patched, prober, states=8).check(CheckSite(ADDRESS, text[0].data))
        assert result.outcome is wanted, result


@pytest.mark.parametrize(
    ("isa", "code"),
    [
        *((isa, code) for isa in ("x86_64", "i386") for code in ("66e202", "66e002", "66e302", "66ffd0", "66ff10")),
        *((isa, code) for isa in ("x86_64", "i386") for code in ("66ff18", "66e802009090")),
        ("x86_64", "ff18"),
        ("i386", "669a00003300"),
    ],
)
def test_an_instruction_that_a_step_would_correct_wrongly_is_refused(isa, code):
    """With an operand-size prefix the pc has 16 bits, and so has a return address: of a copy elsewhere, another."""
    found = PORTS[isa].treat(Code(bytes.fromhex(code).ljust(16, b"\x90"), ADDRESS), Fidelity.EXACT)
    assert isinstance(found, Refused)
    assert found.rule.errno == ENOTSUPP


@pytest.mark.parametrize(
    ("isa", "code"),
    [
        *((isa, code) for isa in ("x86_64", "i386") for code in ("e202", "e302", "67e302", "ffd0", "ff10", "66c3")),
        ("x86_64", "6648e202"),  # REX.W makes the prefix void
        ("x86_64", "48ff18"),
        ("i386", "ff18"),
        ("i386", "9a000000003300"),
    ],
)
def test_what_a_step_puts_right_is_the_same_as_without(isa, code):
    text = [Stretch(ADDRESS, bytes.fromhex(code) + bytes(16))]
    plain, patched = (TrialCpu(ISAS[isa], text, stepping=stepping) for stepping in (True, False))
    checker = SiteChecker(plain, patched, UprobeProber(patched, ADDRESS + (1 << 20), Rules()), states=32)
    result = checker.check(CheckSite(ADDRESS, text[0].data))
    assert result.outcome is Outcome.AGREED, result
    assert result.why.startswith("stepped")


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize(("fidelity", "status"), [(Fidelity.EXACT, 1), (Fidelity.LINUX, 0)])
def test_a_counter_whose_page_two_writable_segments_share_is_its_own(isa, fidelity, status, tmp_path):
    """Linux counts in the first writable mapping of the page, where the program does not look."""
    from emu.elf.stapsdt import markers

    path = tmp_path / "small"
    layout = small_elf.Layout(isa)
    path.write_bytes(small_elf.program(layout, ("r", "x", "w", "w"), work=small_elf.TELL, marked=True))
    path.chmod(0o755)
    machine, _ = start(isa, [path], evaltime=EvalTime.EXEC)
    guest = machine.guest
    (loaded,) = guest.objects.of(guest.kernel.first)
    (marker,) = markers(loaded.image)
    hits = []
    Uprobes(guest.kernel, fidelity).register(
        loaded.file,
        loaded.image.offset_of(marker.location),
        Consumer(handler=lambda _frame: hits.append(guest.engine.pc)),
        loaded.image.offset_of(marker.semaphore),
    )
    guest.run(None)
    assert hits == [marker.location] * 2
    assert guest.exit_status == status

"""The refusals of a Linux kernel's own probes, beside Trapline's, place by place.

The functions that register probes are called in the stopped kernel, so that each place is asked
for by itself:

    kprobes   register_kprobe(), disabled, at the places of our entry probes, beside our blacklist
    uprobes   uprobe_register() at the instructions of a program, beside `providers.uprobes`

Source: Linux 6.12 kernel/kprobes.c (register_kprobe, check_kprobe_address_safe),
kernel/events/uprobes.c (uprobe_register, prepare_uprobe).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from emu.displaced.decision import Code, Refused
from emu.guest.base import GuestError
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.guest.linux_kernel.kernel_calls import KernelCallError, KernelCalls, error_name, error_of
from emu.isa.base import Isa
from emu.support.words import BadAddressError
from providers import fasttrap, uprobes
from providers.fidelity import Fidelity
from providers.linux_kernel.consumers import EVERYWHERE, Consumers, FileOffset, RefusedError
from providers.linux_kernel.port import PORTS
from providers.linux_kernel.refusals import Refusals
from providers.linux_kernel.sites import LONGEST, entry_site
from trapline.machine.linux_kernel_machine import LinuxKernelOptions, TracedLinuxKernel, start

# Places of which one is asked for, by kind of probe: the kernel keeps what it has registered.
KPROBE_STEP: Final = 40
UPROBE_STEP: Final = 60
_POINTER: Final = struct.Struct("<Q")
_WORD: Final = struct.Struct("<I")
_DISABLED: Final = 2
# The answer of both that allows a probe.
ALLOWED: Final = "allowed"
# Refused by kernels without KPROBES_ON_FTRACE; our probe is lost while ftrace traces the function.
ON_PAD: Final = "allowed, on ftrace's pad"


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The places of one kind about which both say the same things."""

    kind: str
    """kprobe or uprobe."""
    ours: str
    """The answer of Trapline: `allowed`, or the reason of its refusal."""
    kernel: str
    """The answer of the kernel: `allowed`, or the name of an error number."""
    count: int
    example: str

    @property
    def agrees(self) -> bool:
        """Whether both allow the probe, or both refuse it; `ON_PAD` agrees with anything."""
        return self.ours == ON_PAD or (self.ours == ALLOWED) is (self.kernel == ALLOWED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answers for one place."""

    kind: str
    ours: str
    kernel: str
    place: str


def refusals(isa: Isa, kprobe_step: int = KPROBE_STEP, uprobe_step: int = UPROBE_STEP) -> list[Verdicts]:
    """Ask a kernel about every n-th place; return what both say, the most frequent first.

    Raises `emu.guest.linux_kernel.errors.KernelFileError`, and `emu.guest.base.GuestError`.
    """
    traced = start(LinuxKernelOptions(isa=isa, commands=("ls /",)))
    traced.programs.run_to_program(traced.target)
    calls = traced.guest.calls
    calls.here()
    try:
        found = [*_kprobes(traced, calls, kprobe_step), *_uprobes(traced, calls, uprobe_step)]
    except KernelCallError as error:
        raise GuestError(str(error)) from None
    return count_verdicts(found)


def count_verdicts(verdicts: Iterable[Verdict]) -> list[Verdicts]:
    """Return which answers there are, the most frequent first."""
    found = [*verdicts]
    counts = Counter((one.kind, one.ours, one.kernel) for one in found)
    examples = {(one.kind, one.ours, one.kernel): one.place for one in reversed(found)}
    return [Verdicts(*key, count, examples[key]) for key, count in sorted(counts.items(), key=lambda one: -one[1])]


def _kprobes(traced: TracedLinuxKernel, calls: KernelCalls, step: int) -> Iterator[Verdict]:
    guest = traced.guest
    btf = guest.facts.btf
    size = btf.struct_size("kprobe")
    size += -size % 64
    place = guest.scratch.start
    forbidden = Refusals(guest)
    for symbol in [*guest.facts.functions()][::step]:
        try:
            code = traced.text.code(symbol.value, 3 * LONGEST)
        except BadAddressError:
            continue
        site = entry_site(guest.isa, code, symbol.value)
        if site is None:
            continue  # a refusal of ours for want of a plan, which has no counterpart
        content = bytearray(size)
        _POINTER.pack_into(content, btf.offset("kprobe", "addr"), site[0])
        _WORD.pack_into(content, btf.offset("kprobe", "flags"), _DISABLED)
        place += size
        if place + size > guest.scratch.stop:
            return
        guest.store(place, bytes(content))
        number = error_of(calls.call("register_kprobe", place))
        kernel = error_name(number) if number else ALLOWED
        port, at = PORTS[guest.isa.name], site[0] - symbol.value
        ours = forbidden.reason(site[0]) or (ON_PAD if port.pad(code[at:]) else ALLOWED)
        yield Verdict("kprobe", ours, kernel, f"{symbol.name}+{site[0] - symbol.value:#x}")


def _uprobes(traced: TracedLinuxKernel, calls: KernelCalls, step: int) -> Iterator[Verdict]:
    guest, programs = traced.guest, traced.guest.programs
    process = None if programs is None else programs.process(traced.target)
    if programs is None or process is None:
        return
    program = programs.of(process)[0]
    port = uprobes.PORTS[guest.isa.name]
    section = max(program.image.code_sections, key=lambda one: len(one.data))

    def places() -> Iterator[tuple[int, int, bytes]]:
        for offset in [*fasttrap.PORTS[guest.isa.name].boundaries(section.data)][::step]:
            address = section.address + offset
            data = section.data[offset : offset + port.longest]
            in_file = program.image.offset_of(address)
            if in_file is not None and in_file % port.alignment == 0 and len(data) == port.longest:
                yield address, in_file, data

    assert isinstance(program.file, int)
    yield from uprobe_verdicts(guest, calls, program.file, program.name, places())


def uprobe_verdicts(
    guest: LinuxKernelGuest, calls: KernelCalls, file: int, name: str, places: Iterable[tuple[int, int, bytes]]
) -> Iterator[Verdict]:
    """Ask the kernel for uprobes in a file that is mapped, and Trapline for the same.

    `file` is the address of the inode; a place is an address, the offset in the file, and the bytes
    from there on.

    Raises `KernelCallError`.
    """
    port, consumers = uprobes.PORTS[guest.isa.name], Consumers(guest, calls)
    for address, in_file, data in places:
        decision = port.treat(Code(data, address), Fidelity.LINUX)
        ours = decision.rule.name if isinstance(decision, Refused) else ALLOWED
        try:
            consumers.unregister(consumers.register(FileOffset(EVERYWHERE, file, in_file)))
            kernel = ALLOWED
        except RefusedError as refused:
            kernel = error_name(refused.number)
        yield Verdict("uprobe", ours, kernel, f"{name}+{address:#x}: {data.hex()}")

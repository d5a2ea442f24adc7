"""The patching of a site as steps: what is written, byte by byte, and what makes the CPU see it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from trapline.lab.step.names import Names
from trapline.lab.step.recording import Access, Mode, Patch, Stage, Step
from trapline.lab.step.subject import Subject

_LONGEST: Final = 16
# The bytes of code that a CPU always fetches as they were before a store, or as they are after it.
_WHOLE: Final = 4
# The way in which a patch is written that CPUs see whole, and a longer one.
_ONE: Final = "by one store, so no CPU ever sees half of it"
_SEVERAL: Final = "while the other CPUs wait at a rendezvous on a real machine, since they could see half of it"


def patching(subject: Subject, names: Names, address: int) -> Iterator[Step]:
    """Yield the steps of patching a site, which is patched now."""
    original, now = subject.original(address, _LONGEST), subject.read(address, _LONGEST)
    changed = [place for place, (old, new) in enumerate(zip(original, now, strict=False)) if old != new]
    if not changed:
        return
    own, before = names.instruction(original, address)
    new, after = names.instruction(now, address)
    # A breakpoint of one byte may be the prefix of a longer instruction; the end of a jump may be as it was.
    size = max(changed[-1] + 1, new if len(changed) > 1 else 0)
    length = max(own, size)
    patch = Patch(address, names.place(address), original[:length], now[:length], before, after)
    first = (
        f"The probe is enabled. Its site is {_site(before, own, length)}. "
        f"{size} of them will be overwritten, {_SEVERAL if size > _WHOLE else _ONE}."
    )
    yield _step(0, names, address, "enable", first, patch)
    shown = bytearray(original[:length])
    for number, place in enumerate(changed, start=1):
        shown[place] = now[place]
        _, text = names.instruction(bytes(shown) + original[length:], address)
        said = f"Byte {place} of the site becomes {now[place]:02x}; it was {original[place]:02x}."
        if number == len(changed):
            said += f" The CPU will read {text}."
        access = Access(write=True, address=address + place, size=1, value=now[place], before=original[place])
        yield _step(number, names, address, "the store", said, patch, access)
    # FreeBSD's actions after the store: sys/cddl/dev/fbt/<machine>/fbt_isa.c, fbt_patch_tracepoint().
    told = subject.isa.traps.flush
    if size > _WHOLE:  # its words on other CPUs are about one breakpoint
        told = f"{told.partition('. ')[0].rstrip('.')}."
    flush = f"{told} Here the emulator drops its translation of this code."
    yield _step(len(changed) + 1, names, address, "instruction cache", flush, patch)


def _site(before: str, own: int, length: int) -> str:
    """Return what stands at a site: an instruction, or several."""
    if length > own:
        return f"{length} bytes, which begin with the instruction {before}"
    return f"the instruction {before}, of {length} byte{'s' if length > 1 else ''}"


def _step(index: int, names: Names, address: int, text: str, sentence: str, patch: Patch, *memory: Access) -> Step:
    where = names.place(address)
    return Step(index, Stage.ENABLE, Mode.EMULATOR, where, address, b"", text, sentence, memory=memory, patch=patch)

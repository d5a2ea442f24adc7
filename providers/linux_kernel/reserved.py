"""Instructions that a Linux kernel itself rewrites while it runs: jump labels and static calls.

A breakpoint there would be overwritten, and taking it out would undo what the kernel has written.
Linux refuses kprobes at these places as well.

Source: Linux 6.12 kernel/kprobes.c (check_kprobe_address_safe: jump_label_text_reserved,
static_call_text_reserved), include/linux/jump_label.h, include/linux/static_call_types.h.
"""

from __future__ import annotations

import struct
from typing import Final

from emu.guest.linux_kernel.facts import KernelFacts
from emu.words import WORD_MASK

# struct jump_entry and struct static_call_site begin with the distance of the code.
_TABLES: Final = (
    ("__start___jump_table", "__stop___jump_table", struct.Struct("<i12x")),
    ("__start_static_call_sites", "__stop_static_call_sites", struct.Struct("<i4x")),
)


def reserved(facts: KernelFacts) -> frozenset[int]:
    """Return the addresses of the instructions that a kernel rewrites."""
    found: set[int] = set()
    for first, last, entry in _TABLES:
        table = facts.between(first, last)
        content = facts.content(table)
        whole = len(content) // entry.size * entry.size
        for number, (distance,) in enumerate(entry.iter_unpack(content[:whole])):
            found.add(table.start + entry.size * number + distance & WORD_MASK)
    return frozenset(found)

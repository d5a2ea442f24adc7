"""Instructions that a Linux kernel itself rewrites while it runs: jump labels and static calls.

A breakpoint there would be overwritten, and taking it out would undo what the kernel has written.
Linux refuses kprobes at these places as well.

Source: Linux 6.12 kernel/kprobes.c (check_kprobe_address_safe: jump_label_text_reserved,
static_call_text_reserved).
"""

from __future__ import annotations

from emu.guest.linux_kernel.files.tables import Table, Tables, places


def reserved(tables: Tables) -> frozenset[int]:
    """Return the addresses of the instructions that a kernel, or a module, rewrites."""
    return frozenset({*places(tables, Table.JUMP_LABELS), *places(tables, Table.STATIC_CALLS)})

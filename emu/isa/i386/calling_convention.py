"""i386 calling conventions: System V, all arguments on the stack; and Linux's int $0x80."""

from __future__ import annotations

from emu.isa.base import CallingConvention
from emu.isa.x86.instruction import ends_with_call, taken_by_return

CALLING = CallingConvention(
    arguments=(),
    results=("eax", "edx"),
    stack_arguments=4,
    system_call_number="eax",
    # FreeBSD's are on the user's stack (the guest kernel reads them there); these are Linux's.
    system_call_arguments=("ebx", "ecx", "edx", "esi", "edi", "ebp"),
    taken_by_return=taken_by_return,
    ends_with_call=ends_with_call,
    frame_next=0,
    frame_return=4,
)

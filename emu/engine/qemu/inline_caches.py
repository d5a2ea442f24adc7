"""The places of served breakpoints in translated blocks: their calls, made shorter.

Where a breakpoint is served (`emu.engine.qemu.code_hooks`), the translated block calls the hook,
which searches two tables, does the steps of the hit, and asks QEMU for the block at the new pc.  So
when it is served for the first time, the end of that call is replaced, in the machine code that
Unicorn made for the host:

    what Unicorn has made                      what replaces it

    movabs $uc,%rdi                            (as before)
    mov    $address,%rsi                       (as before)
    mov    $size,%edx                          (as before)
    movabs $MARKER,%rcx                        movabs $site,%rcx
    call   code_hook                           call served_hook
    movabs $uc,%rdi                            test %rax,%rax
    xor    %esi,%esi                           je   the breakpoint
    call   helper_check_exit_request           jmp  *%rax

`served_hook` returns the machine code to go on with; 0: the breakpoint's exception follows.  A
jump, which the host predicts by its place, replaces a return to another place than that of the
call, which it never predicts.  Without the test the run may still end there: by the exception, or
at the head of the next block.

The site remembers the next block by the rule by which QEMU itself chains blocks
(qemu/accel/tcg/translate-all.c and cpu-exec.c): within a page, since nothing that a hit does
changes what a translation depends on, and until a block is dropped (`emu.engine.qemu.jump_cache`
finds QEMU's count of these).  A block that reaches into another page is asked for each time.

Only code that is exactly the known code is overwritten.  Sites are in the memory of the entries of
`emu.engine.qemu.inlined_count`, and last as long as the translated blocks: until all are translated
again.
"""

from __future__ import annotations

from typing import Final

from emu.engine.qemu.inlined_count import ENTRY_SIZE
from emu.native.block import Block

# The last argument of the hook: a number that TCG encodes in ten bytes, and that no other code contains.
MARKER: Final = 0x7472_6170_7369_7465


class ServedSite(Block):
    """A call of a hook in a translated block."""

    place: int
    """The address of its `HookedAddress`."""
    pc: int
    """The pc of the block that followed it; `NOWHERE`: none is known."""
    code: int
    """The machine code of the block that followed it."""
    count: int
    """QEMU's count of dropped blocks for which it holds."""
    seen: int
    """The count at the latest hit."""


# Bytes of a site: of whole entries.
SITE_SIZE: Final = -(-len(ServedSite._fields_) * 8 // ENTRY_SIZE) * ENTRY_SIZE

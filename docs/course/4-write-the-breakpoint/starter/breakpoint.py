"""A breakpoint of your own: put it in, do the displaced instruction's work, take it out."""

# The bytes of the breakpoint instruction of your ISA, in the order in which memory has them.
BREAKPOINT = b""


def install(cpu, address):
    """Put the breakpoint over the instruction at `address`; return what `remove` will need."""


def remove(cpu, address, saved):
    """Take the breakpoint out; `saved` is what `install` has returned."""


def handle(cpu, address):
    """The breakpoint at `address` was hit, and cpu["pc"] is that address.

    Do what the displaced instruction would have done, and let the pc stand on the next one.
    """

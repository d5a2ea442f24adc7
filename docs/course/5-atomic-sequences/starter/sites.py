"""The places where a probe may stand.  Both functions get the instructions of one function.

Each has an `address`, a `size` in bytes, its `text`, and a `target`: the address that a branch goes
to, else None.  Return the addresses of those at which a probe may stand.
"""


def breakpoints(instructions):
    """A breakpoint replaces one instruction, which is then executed in a single step."""
    return []


def jumps(instructions, size):
    """A jump of `size` bytes replaces all instructions that it touches.

    It leads to a trampoline, which calls the probe, executes those instructions, and jumps back.
    """
    return []

"""Signals for a thread whose instruction runs in a slot.

A slot has four numbers:

    slot.address    the address of the probed instruction in the program
    slot.length     its length in bytes
    slot.start      the address of the copy, in memory that the program knows nothing of
    slot.copied     the length of the copy; a jump back to the program follows it
"""


def interrupted(pc, slots):
    """A signal has arrived; the thread would execute the instruction at `pc` next.

    Return ("deliver", pc), with the pc that the program's handler sees and comes back to; or
    ("defer", None): the thread executes one more instruction, and you are asked again.
    """
    raise NotImplementedError


def faulted(pc, slots):
    """The instruction at `pc` has faulted.  Return the pc that the program's handler sees."""
    raise NotImplementedError

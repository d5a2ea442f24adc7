"""Return probes that replace return addresses.

At the entry of a probed function the kernel calls `entered`, and then puts the address of its
trampoline in the place of the return address.  When the function returns, the program comes to the
trampoline, and the kernel calls `returned`.
"""


class Returns:
    def __init__(self, trampoline):
        """`trampoline` is the address of the trampoline."""

    def entered(self, task, sp, address):
        """A probed function was entered.

        `task` is the number of the process, `sp` the stack pointer as it will be when the function
        has returned, `address` the return address that is about to be replaced.  Stacks grow
        downwards.
        """

    def returned(self, task, sp):
        """The trampoline was reached; `sp` is the stack pointer now.

        Return (address, count): where the program has to continue, and how many probed functions
        have returned to it: more than one, if one of them left for another by a jump.
        """
        return 0, 0

"""A provider of your own: coverage:::first fires when a function is entered for the first time.

After that it costs nothing, since its breakpoint is gone.
"""

from providers.base import Provider


class Coverage(Provider):
    name = "coverage"

    def __init__(self, framework, patcher, traps, sites):
        """Register, create a probe for each site, and join the chain of handlers.

        A site has `function`, `address`, `patch` (the bytes of the breakpoint), and `answer`: what
        your handler has to return, so that the displaced instruction is executed.
        """
        self.framework = framework
        self.patcher = patcher

    def enable(self, probe_id, arg):
        """A consumer wants the probe; `arg` is what you gave to probe_create."""

    def disable(self, probe_id, arg):
        """No consumer wants it any more."""

    def destroy(self, probe_id, arg):
        """The probe is gone."""

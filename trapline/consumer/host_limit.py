"""-x hosttimeout: an end of the trace by the host's clock, whatever the guest does.

Virtual time does not pass while the host works for the guest, so `-x timeout` alone cannot limit
that.  After the limit the trace is stopped as by ^C: END fires, and the recorded data are shown.
Work that cannot be stopped in this way, such as a long compilation, is ended with the process.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Final

from trapline.options import NANOSECONDS

# Seconds after the limit in which the trace may stop and show its data.
GRACE: Final = 5.0
# Seconds between two attempts to interrupt the guest: it may be about to start a run.
_AGAIN: Final = 0.05


def _end_process(text: str) -> None:
    """End the process now, whatever its other threads do."""
    os.write(2, f"{text}\n".encode())
    os._exit(1)


class HostLimit:
    """Watches the host's clock from a thread of its own.

    `interrupt` makes the guest's run return; `end(text)` ends the process if that does not help
    within `GRACE`.
    """

    def __init__(self, name: str, end: Callable[[str], object] = _end_process) -> None:
        self.interrupt: Callable[[], object] = lambda: None
        self.passed = False
        self._name = name
        self._end = end
        self._over = threading.Event()
        self._seconds = 0.0

    def start(self, nanoseconds: int) -> None:
        """Begin to count."""
        self._seconds = nanoseconds / NANOSECONDS
        threading.Thread(target=self._watch, name="hosttimeout", daemon=True).start()

    def stop(self) -> None:
        """Stop watching: the command is over."""
        self._over.set()

    def text(self, now: int) -> str:
        """Return the message after the limit has passed, at a time of the guest."""
        return (
            f"stopped after {self._seconds:g} s of the host's time (-x hosttimeout), "
            f"at {now / NANOSECONDS:.6f} s of the guest's"
        )

    def _watch(self) -> None:
        if self._over.wait(self._seconds):
            return
        self.passed = True
        last = time.monotonic() + GRACE
        while time.monotonic() < last:
            self.interrupt()
            if self._over.wait(_AGAIN):
                return
        self._end(
            f"{self._name}: ended {GRACE:g} s after {self._seconds:g} s of the host's time (-x hosttimeout): "
            f"it could not be stopped"
        )

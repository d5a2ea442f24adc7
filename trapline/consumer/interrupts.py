"""Interrupts of the user: the first stops the trace, the second gives up at once.

Source: FreeBSD cmd/dtrace/dtrace.c (intr).
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Final, Self

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Counts SIGINT and SIGTERM while in its `with` block.

    `on_interrupt` is called with each count.
    """

    def __init__(self, on_interrupt: Callable[[int], None]) -> None:
        self._on_interrupt = on_interrupt
        self._previous: dict[signal.Signals, Any] = {}
        self.count = 0

    def interrupt(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Count an interrupt, as the signal's handler does."""
        self.count += 1
        self._on_interrupt(self.count)

    def __enter__(self) -> Self:
        # Only the main thread may set handlers; elsewhere, as in a notebook, the host handles the signals.
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._previous[number] = signal.signal(number, self.interrupt)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

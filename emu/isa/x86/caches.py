"""The instruction caches of x86 CPUs, in words."""

from __future__ import annotations

from typing import Final

# Source: Intel SDM volume 3, section 9.1.3, self-modifying and cross-modifying code.
FLUSH: Final = (
    "Nothing is flushed: an x86 CPU keeps its instruction cache in step with stores. Other CPUs see the old byte or "
    "the new one, since it is one byte."
)

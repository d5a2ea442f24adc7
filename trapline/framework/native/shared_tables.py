"""Aggregations and dynamic variables in memory that machine code works on too."""

from __future__ import annotations

from trapline.framework.base.blocks import ConsumerWord
from trapline.framework.native.aggregate import SharedAggregationBuffer
from trapline.framework.native.dif.dynvars import SharedDynamicVariables
from trapline.framework.probe.runtime import Runtime


def share(runtime: Runtime) -> None:
    """Replace Python's own memory by memory that is shared with machine code.

    Tracing has begun.  Stored data remain; Python continues to use them by the same functions.
    """
    for cpu, old in enumerate(runtime.aggregation_buffers):
        shared = runtime.aggregation_buffers[cpu] = SharedAggregationBuffer(len(old.data), old)
        runtime.aggregation_addresses[cpu] = shared.address
    dynamic = runtime.variables.dynamic = SharedDynamicVariables(runtime.variables.dynamic)
    runtime.words[ConsumerWord.DYNAMIC] = dynamic.address

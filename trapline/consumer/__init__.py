"""The consumer: the equivalent of libdtrace's run-time half and of dtrace(1).

From the lowest level to the highest: `text`, `layout`, `symbols`, `printf` turn bytes into text;
`aggregate`, `order`, `distribution`, `report` store and print aggregations; `records`, `plan`,
`flow`, `faults` read buffers; `session` runs a trace; `tracer` is the Python interface, `command`
is dtrace(1).
"""

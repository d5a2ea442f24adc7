"""The consumer: what libdtrace's run-time half and dtrace(1) are.

From the bottom: `text`, `layout`, `symbols`, `printf` put bytes into words; `aggregate`, `order`,
`distribution`, `report` keep and print aggregations; `records`, `plan`, `flow`, `faults` read
buffers; `session` runs a trace; `tracer` is the Python interface, `command` is dtrace(1).
"""

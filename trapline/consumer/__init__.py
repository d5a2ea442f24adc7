"""The consumer: the equivalent of libdtrace's run-time half and of dtrace(1).

From the lowest level to the highest: `text` turns bytes into text; `aggregations` stores and orders
aggregations; `records` reads buffers and prints them; `program` compiles and describes; `session`
runs a trace; `tracer` is the Python interface, `command` is dtrace(1).
"""

"""Traces in the formats of other tools: `--export FILE` of dtrace, uprobe and usdt.

`events` is what every format is made from, `formats` the table of formats; each other module writes
one.
"""

"""The Unicorn library of this host, and the places of the state that its public calls hide.

| module | content |
| --- | --- |
| `emu.unicorn_layout.errors` | the error of a library that cannot be used |
| `emu.unicorn_layout.library` | the identity of the library |
| `emu.unicorn_layout.layout` | the offsets: from a table, or from calibration |
| `emu.unicorn_layout.find` | the search of the offsets by experiments, in a process of its own |
| `emu.unicorn_layout.bench` | an engine to experiment with |
| `emu.unicorn_layout.common` | the experiments that are the same on every CPU |
| `emu.unicorn_layout.read` | reads memory of this process that may not be mapped |

The experiments of one CPU are in `emu/isa/<isa>/calibration.py`.
"""

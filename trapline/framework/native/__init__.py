"""Clauses as machine code.

| module | content |
| --- | --- |
| `firing` | the words of a firing, which machine code and Python share |
| `dif` | a DIF object as one function |
| `builtins` | the built-in variables that need no Python |
| `upcalls` | the calls from machine code to Python, for everything that has no native form |
| `ecb` | a whole clause as one function |

Python defines the meaning (`trapline.framework.dif.interpreter`), and does everything that has no
native form.
"""

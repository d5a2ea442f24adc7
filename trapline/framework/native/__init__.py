"""Clauses as machine code.

| module | what it makes or is |
| --- | --- |
| `firing` | the words of a firing, which machine code and Python share |
| `dif` | a DIF object as one function |
| `builtins` | the built-in variables that need no Python |
| `upcalls` | the way from machine code to Python, for everything that has no native form |
| `ecb` | a whole clause as one function |

Python says what everything means (`trapline.framework.machine`), and does what has no form here.
"""

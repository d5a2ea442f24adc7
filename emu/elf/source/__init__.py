"""The source of machine code, by DWARF: its lines, and the functions that were inlined into it.

`units` finds the compilation unit of an address, `lines` reads its line table, and `inlining` the
calls that a compiler has replaced by the code of the function.  Units are read when they are
needed: a debug file of a kernel has thousands.

Source: DWARF 5; pyelftools decodes it.
"""

"""Stacks by call frame information: what compilers write down about each instruction's frame.

`entries` finds the entry of an instruction, `rows` compiles an entry to a small table of rules,
`expressions` evaluates the rules that are programs, and `walk` follows a stack.  Nothing here knows
ELF files or guests.

Sources: DWARF 5, section 6.4; Linux Standard Base, "Exception frames", for `.eh_frame`.
"""

"""The common part of x86-64 and i386.

It has decoded instructions, plans of branches, conditions, lengths, and LOCK.
"""

"""What x86-64 and i386 share.

It has decoded instructions, plans of branches, conditions, lengths, and LOCK.
"""

"""What x86-64 and i386 share.

Instructions taken apart, what is done with branches, conditions, lengths, LOCK.
"""

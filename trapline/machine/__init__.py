"""What makes a machine that can be traced: a guest, the framework over it, and its providers."""

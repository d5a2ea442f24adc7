"""Events in machine code: a hit writes its line into a buffer, and Python shows the buffer."""

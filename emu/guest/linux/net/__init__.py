"""Sockets and the loopback network of the Linux guest."""

"""System calls on sockets, by the names of Linux' own sources in net/."""

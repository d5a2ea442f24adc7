"""System calls on files, by the names of Linux' own sources in fs/."""

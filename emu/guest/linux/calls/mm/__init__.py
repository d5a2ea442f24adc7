"""System calls on memory, by the names of Linux' own sources in mm/."""

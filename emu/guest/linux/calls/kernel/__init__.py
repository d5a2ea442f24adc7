"""System calls on processes, signals, time and limits, as in Linux' kernel/."""

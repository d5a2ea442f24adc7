"""The user's own compiled patcher: its stores, barriers and calls become the script of a race."""

"""lockstat(1): which locks are taken, by whom, how long they are held, and how long others wait."""

"""lockstat(1): the locks that are taken, their callers, and the times of holding and waiting."""

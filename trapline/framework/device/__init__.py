"""/dev/dtrace/dtrace: the device, its requests, and the state of one consumer."""

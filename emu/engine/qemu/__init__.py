"""All that knows or changes the inside of QEMU, which Unicorn is made from."""

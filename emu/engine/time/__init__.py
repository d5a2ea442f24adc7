"""Virtual time: instructions are counted, and turned into nanoseconds."""

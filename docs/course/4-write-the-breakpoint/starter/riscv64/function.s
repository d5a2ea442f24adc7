// f(a, b) = a + 2 * b.  The probe stands on the instruction that saves ra, which has two bytes.
    c.addi sp, -32
probe:
    c.sdsp ra, 24(sp)
    c.add a0, a1
    add a0, a0, a1
    c.ldsp ra, 24(sp)
    c.addi16sp sp, 32
    c.jr ra

// f(a, b) = a + 2 * b.  The probe stands on the first instruction.
probe:
    stp x29, x30, [sp, #-32]!
    mov x29, sp
    add x0, x0, x1
    add x0, x0, x1
    ldp x29, x30, [sp], #32
    ret

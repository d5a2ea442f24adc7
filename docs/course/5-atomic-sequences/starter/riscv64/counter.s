// counter: *address += 1, until nobody else was faster; f(address)
again:
    lr.d a1, (a0)
    c.addi a1, 1
    sc.d a2, a1, (a0)
    bnez a2, again
    c.mv a0, a1
    c.jr ra

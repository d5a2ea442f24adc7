// compare-and-swap: it gives up; f(address, expected)
    c.li a3, 7
again:
    lr.d.aq a2, (a0)
    bne a2, a1, out
    sc.d.rl a4, a3, (a0)
    c.bnez a4, again
    c.nop
out:
    c.mv a0, a2
    c.jr ra
---
// amo: one instruction; then a loop
    c.li a1, 3
    amoadd.d a2, a1, (a0)
    c.add a2, a1
    c.li a5, 1
retry:
    c.add a5, a2
    lr.w a3, (a0)
    add a3, a3, a2
    sc.w a4, a3, (a0)
    bnez a4, retry
    c.mv a0, a3
    c.jr ra

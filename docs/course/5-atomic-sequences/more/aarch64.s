// compare-and-swap: it gives up; f(address, expected)
    mov x3, #7
again:
    ldxr x2, [x0]
    cmp x2, x1
    b.ne out
    stxr w4, x3, [x0]
    cbnz w4, again
    nop
out:
    clrex
    mov x0, x2
    ret
---
// ordered: loads and stores that are not exclusive; then a pair that is
    ldar x1, [x0]
    add x1, x1, #1
    stlr x1, [x0]
    ldr x2, [x0]
retry:
    ldxr x3, [x0]
    add x3, x3, x2
    nop
    stlxr w4, x3, [x0]
    cbnz w4, retry
    mov x0, x3
    ret

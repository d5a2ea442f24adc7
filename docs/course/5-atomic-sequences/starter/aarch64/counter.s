// counter: *address += 1, until nobody else was faster; f(address)
again:
    ldaxr x1, [x0]
    add x1, x1, #1
    stlxr w2, x1, [x0]
    cbnz w2, again
    mov x0, x1
    ret

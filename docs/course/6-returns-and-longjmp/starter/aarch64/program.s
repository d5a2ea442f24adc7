// down(n, far): calls itself n times.  At the bottom it returns, or if far it leaves all of its
// calls at once, as longjmp does.  program(n, far) calls down(n, far), which comes back at `again`
// if it goes far.  If far is 2 that is all; else it calls down(2, 0), then `tail`, which leaves for
// down by a jump.
program:
    stp x29, x30, [sp, #-16]!
    mov x29, sp         // setjmp: where the stack is; the place is `again`
    bl down
    nop
again:
    cmp x1, #2
    b.eq done
    mov x0, #2
    mov x1, #0
    bl down
    mov x1, #0
    bl tail
done:
    mov sp, x29
    ldp x29, x30, [sp], #16
    ret
tail:
    and x0, x0, #3
    b down
down:
    cbz x0, bottom
    stp x30, x0, [sp, #-16]!
    sub x0, x0, #1
    bl down
    ldp x30, x2, [sp], #16
    add x0, x0, x2
    ret
bottom:
    mov x0, #10
    cbnz x1, far
    ret
far:
    mov sp, x29         // longjmp
    b again

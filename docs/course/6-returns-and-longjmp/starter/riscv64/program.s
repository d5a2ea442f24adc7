// down(n, far): calls itself n times.  At the bottom it returns, or if far it leaves all of its
// calls at once, as longjmp does.  program(n, far) calls down(n, far), which comes back at `again`
// if it goes far.  If far is 2 that is all; else it calls down(2, 0), then `tail`, which leaves for
// down by a jump.
program:
    addi sp, sp, -16
    sd ra, 8(sp)
    sd s0, 0(sp)
    mv s0, sp           // setjmp: where the stack is; the place is `again`
    jal ra, down
    nop
again:
    li t0, 2
    beq a1, t0, done
    li a0, 2
    li a1, 0
    jal ra, down
    li a1, 0
    jal ra, tail
done:
    mv sp, s0
    ld ra, 8(sp)
    ld s0, 0(sp)
    addi sp, sp, 16
    ret
tail:
    andi a0, a0, 3
    jal zero, down
down:
    beqz a0, bottom
    addi sp, sp, -16
    sd ra, 8(sp)
    sd a0, 0(sp)
    addi a0, a0, -1
    jal ra, down
    ld a2, 0(sp)
    ld ra, 8(sp)
    addi sp, sp, 16
    add a0, a0, a2
    ret
bottom:
    li a0, 10
    bnez a1, far
    ret
far:
    mv sp, s0           // longjmp
    jal zero, again

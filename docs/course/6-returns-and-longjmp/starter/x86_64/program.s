// down(n, far): calls itself n times.  At the bottom it returns, or if far it leaves all of its
// calls at once, as longjmp does.  program(n, far) calls down(n, far), which comes back at `again`
// if it goes far.  If far is 2 that is all; else it calls down(2, 0), then `tail`, which leaves for
// down by a jump.
program:
    push rbp
    push rbx
    mov rbp, rsp        // setjmp: where the stack is; the place is `again`
    mov rbx, rsi        // whether to go far
    call down
    nop
again:
    cmp rsi, 2
    je done
    mov edi, 2
    xor esi, esi
    call down
    mov edi, eax
    xor esi, esi
    call tail
done:
    mov rsp, rbp
    pop rbx
    pop rbp
    ret
tail:
    and edi, 3
    jmp down
down:
    test rdi, rdi
    je bottom
    push rdi
    dec rdi
    call down
    pop rdi
    lea eax, [rax+rdi]
    ret
bottom:
    mov eax, 10
    test rsi, rsi
    jne far
    ret
far:
    mov rsp, rbp        // longjmp
    jmp again

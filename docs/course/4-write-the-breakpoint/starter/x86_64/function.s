// f(a, b) = a + 2 * b.  The probe stands on the first instruction.
probe:
    push rbp
    mov rbp, rsp
    lea rax, [rdi+2*rsi]
    pop rbp
    ret

// compare-and-swap: it gives up; f(address, expected)
    mov rax, rsi
    mov ecx, 7
    lock cmpxchg qword ptr [rdi], rcx
    jne out
    add rax, 1
    nop
out:
    movzx eax, al
    ret
---
// exchange: and an addition
    xor eax, eax
    inc eax
    lock xadd qword ptr [rdi], rax
    xchg qword ptr [rdi], rax
    cmp rax, 3
    je skip
    inc rax
skip:
    dec rax
    ret

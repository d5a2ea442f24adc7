// compare-and-swap: it gives up; f(address, expected)
    mov edx, dword ptr [esp+4]
    mov eax, dword ptr [esp+8]
    mov ecx, 7
    lock cmpxchg dword ptr [edx], ecx
    jne out
    add eax, 1
    nop
out:
    movzx eax, al
    ret
---
// exchange: and an addition
    mov edx, dword ptr [esp+4]
    xor eax, eax
    inc eax
    lock xadd dword ptr [edx], eax
    xchg dword ptr [edx], eax
    cmp eax, 3
    je skip
    inc eax
skip:
    dec eax
    ret

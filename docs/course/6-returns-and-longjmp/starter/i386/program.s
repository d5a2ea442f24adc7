// down(n, far): calls itself n times.  At the bottom it returns, or if far it leaves all of its
// calls at once, as longjmp does.  program(n, far) calls down(n, far), which comes back at `again`
// if it goes far.  If far is 2 that is all; else it calls down(2, 0), then `tail`, which leaves for
// down by a jump. (n is in edi, far in esi.)
program:
    push ebp
    push edi
    push esi
    mov ebp, esp        // setjmp: where the stack is; the place is `again`
    mov edi, dword ptr [esp+16]
    mov esi, dword ptr [esp+20]
    call down
    nop
again:
    cmp esi, 2
    je done
    mov edi, 2
    xor esi, esi
    call down
    mov edi, eax
    xor esi, esi
    call tail
done:
    mov esp, ebp
    pop esi
    pop edi
    pop ebp
    ret
tail:
    and edi, 3
    jmp down
down:
    test edi, edi
    je bottom
    push edi
    dec edi
    call down
    pop edi
    lea eax, [eax+edi]
    ret
bottom:
    mov eax, 10
    test esi, esi
    jne far
    ret
far:
    mov esp, ebp        // longjmp
    jmp again

// counter: *address += 1, until nobody else was faster; f(address)
    mov rax, qword ptr [rdi]
again:
    lea rcx, [rax+1]
    lock cmpxchg qword ptr [rdi], rcx
    jne again
    mov rax, rcx
    ret

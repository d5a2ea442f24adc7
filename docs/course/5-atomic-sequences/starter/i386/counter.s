// counter: *address += 1, until nobody else was faster; f(address)
    mov edx, dword ptr [esp+4]
    mov eax, dword ptr [edx]
again:
    lea ecx, [eax+1]
    lock cmpxchg dword ptr [edx], ecx
    jne again
    mov eax, ecx
    ret

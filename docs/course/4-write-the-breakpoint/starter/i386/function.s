// f(a, b) = a + 2 * b.  The probe stands on the first instruction.
probe:
    push ebp
    mov ebp, esp
    mov eax, dword ptr [ebp+8]
    mov ecx, dword ptr [ebp+12]
    lea eax, [eax+2*ecx]
    pop ebp
    ret

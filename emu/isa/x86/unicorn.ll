; What both modes of x86 share; emu/isa/x86/unicorn.py has the same in Python.

; #UD at the pc; the answer is that of Python: whether the guest is to have it.
define internal i1 @invalid_opcode(ptr %words) {
  %code = call ptr @env(ptr %words, i64 $X86_ERROR_CODE)
  store i32 0, ptr %code
  %soft = call ptr @env(ptr %words, i64 $X86_IS_INT)
  store i32 0, ptr %soft
  %cpu.pp = getelementptr i64, ptr %words, i64 $CPU
  %cpu = load ptr, ptr %cpu.pp
  %exception.p = getelementptr i8, ptr %cpu, i64 $CPU_EXCEPTION
  store i32 $X86_INVALID_OPCODE, ptr %exception.p
  %answer = call i32 inttoptr (i64 $on_trap to ptr)(i32 $X86_INVALID_OPCODE)
  %wanted = icmp ne i32 %answer, 0
  ret i1 %wanted
}

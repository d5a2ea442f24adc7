; The callbacks of RISC-V; emu/isa/riscv64/unicorn.py has the same in Python.

; ebreak.
define i1 @invalid(ptr %uc, ptr %words) {
  ; ebreak leaves an error behind that would end the run although it was handled.
  %error = getelementptr i8, ptr %uc, i64 $UC_INVALID_ERROR
  store i32 0, ptr %error
  %unclaimed = call i1 @breakpoint(ptr %words)
  br i1 %unclaimed, label %guest, label %done
guest:
  call void @deliver(ptr %words)
  ret i1 true
done:
  ret i1 true
}

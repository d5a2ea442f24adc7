; A trap asks Python first; only when Python has returned is the exception handed to QEMU.
; A system call, and there are many, goes straight to the guest, where the guest has a kernel.
define void @trap(ptr %uc, i32 %number, ptr %words) {
  ; Unicorn moves pc on by 4 before every such hook, whatever the instruction: issue 1990.
  %pc.p = call ptr @env(ptr %words, i64 $RISCV_PC)
  %pc.4 = load i64, ptr %pc.p
  %pc = sub i64 %pc.4, 4
  store i64 %pc, ptr %pc.p
  %direct = icmp eq i32 %number, $DIRECT_SYSTEM_CALL
  br i1 %direct, label %guest, label %ask
ask:
  %answer = call i32 inttoptr (i64 $on_trap to ptr)(i32 %number)
  %wanted = icmp ne i32 %answer, 0
  br i1 %wanted, label %guest, label %done
guest:
  call void @deliver(ptr %words)
  ret void
done:
  ret void
}

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

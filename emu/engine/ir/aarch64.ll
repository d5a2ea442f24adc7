; A trap asks Python first; only when Python has returned is the exception handed to QEMU.
; A system call, and there are many, goes straight to the guest, where the guest has a kernel.
define void @trap(ptr %uc, i32 %number, ptr %words) {
  switch i32 %number, label %other [ i32 $BREAKPOINT_NUMBER, label %breakpoint  i32 $DIRECT_SYSTEM_CALL, label %guest ]
breakpoint:
  %unclaimed = call i1 @breakpoint(ptr %words)
  br i1 %unclaimed, label %guest, label %done
other:
  %answer = call i32 inttoptr (i64 $on_trap to ptr)(i32 %number)
  %wanted = icmp ne i32 %answer, 0
  br i1 %wanted, label %guest, label %done
guest:
  call void @deliver(ptr %words)
  ret void
done:
  ret void
}

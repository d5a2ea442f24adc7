; Hosts on which no count is written into translated blocks (emu/engine/qemu/inlined_count.py).
define internal i1 @write(ptr %uc, ptr %code, ptr %entry, i64 %address, i32 %size) {
  ret i1 false
}
define i64 @overdue(ptr %words, ptr %entry) {
  ret i64 0
}
define internal void @entered(ptr %code) {
  ret void
}

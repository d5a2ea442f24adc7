syscall::read:return
/execname == "cat" && (int)arg0 > 0/
{
	@bytes = sum(arg0);
}

/* How many bytes does cat read? */
syscall::read:return
{
	@bytes = count();
}

fbt::malloc:entry
{
	@calls[execname] = count();
}

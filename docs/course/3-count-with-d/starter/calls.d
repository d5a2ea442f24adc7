/* How often does each program call malloc? */
fbt::malloc:entry
{
	@calls["everyone"] = count();
}

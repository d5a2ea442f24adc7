/* plugin.so */
#include "zoo.h"

#include "sdt.h"

extern "C" int plugin_state;
int plugin_state = 70;

extern "C" void
plugin_enter()
{
	say("  the plugin came");
}

__attribute__((constructor)) static void
come()
{
	plugin_enter();
}

__attribute__((destructor)) static void
go()
{
	say("  the plugin goes");
}

PROBEABLE long
plugin_work(long value)
{
	plugin_state++;
	MARKER(plugin__work, value);
	return value * value + plugin_state;
}

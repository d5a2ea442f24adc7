/* A shared object that comes and goes: twice, with a probe-able function in it. */
#include "zoo.h"

#ifdef ZOO_DYNAMIC

#include <dlfcn.h>
#include <string>

int
case_plugin(int, char **)
{
	/* By the plain name: the run path of the program leads to it. */
	for (int round = 0; round < 2; round++) {
		void *plugin = dlopen("plugin.so", RTLD_NOW);
		if (!plugin)
			fail("dlopen");
		auto work = reinterpret_cast<long (*)(long)>(dlsym(plugin, "plugin_work"));
		auto state = static_cast<int *>(dlsym(plugin, "plugin_state"));
		if (!work || !state)
			fail("dlsym");
		for (long i = 0; i < 3; i++) {
			long result = work(i);
			say("round %d: work(%ld) = %ld, state %d", round, i, result, *state);
		}
		say("no such symbol: %d", dlsym(plugin, "plugin_nothing") == nullptr);
		if (dlclose(plugin))
			fail("dlclose");
		say("gone: %d", dlopen("plugin.so", RTLD_NOW | RTLD_NOLOAD) == nullptr);
	}
	return 23;
}

#else

int
case_plugin(int, char **)
{
	say("skipped: a static program loads no plugins");
	return SKIPPED;
}

#endif

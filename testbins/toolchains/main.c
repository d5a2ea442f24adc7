#include <stdio.h>

#include "counted.h"
#ifdef PLUGIN
#include <dlfcn.h>
#endif

struct count *counts;

static void print(struct count *from)
{
	for (struct count *one = from; one; one = one->next)
		printf("called %s %ld\n", one->name, one->calls);
}

int main(void)
{
	long sum = 0;
	double rest = 0;

	COUNTED("main");
	for (int i = 0; i < 9; i++) {
		struct pair pair = make(i);

		sum += leaf(i) + tail(i) + choose(i) + later(i) + indirect(leaf, i) + from_one(i) + from_two(i);
		sum += pair.first + pair.second;
		rest += half(pair.third);
	}
	sum += recurse(9);
#ifdef PLUGIN
	void *plugin = dlopen(PLUGIN, RTLD_NOW);
	if (!plugin) {
		printf("%s\n", dlerror());
		return 1;
	}
	int (*loaded_late)(int) = (int (*)(int)) dlsym(plugin, "loaded_late");
	struct count *(*others)(void) = (struct count *(*)(void)) dlsym(plugin, "plugin_counts");
	for (int i = 0; i < 4; i++)
		sum += loaded_late(i);
	print(others());
#endif
	print(counts);
	printf("%ld %g\n", sum, rest);
	return 3;
}

/* hello.ko: the smallest module. It says when it comes and goes, and can be told not to go. */
#include "sys/linker.h"
#include "sys/systm.h"

int hello_greetings;

int
hello_greet(const char *whom)
{
	hello_greetings++;
	printf("hello, %s\n", whom);
	return (hello_greetings);
}

static int
hello_modevent(module_t mod __unused, int type, void *data __unused)
{
	switch (type) {
	case MOD_LOAD:
		hello_greet("kernel");
		return (0);
	case MOD_UNLOAD:
		printf("bye, after %d\n", hello_greetings);
		return (0);
	default:
		return (EOPNOTSUPP);
	}
}

static moduledata_t hello_mod = { "hello", hello_modevent, NULL };
DECLARE_MODULE(hello, hello_mod, SI_SUB_DRIVERS, SI_ORDER_ANY);

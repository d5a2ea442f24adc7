/* Calls the functions of asm_<isa>.S. Bit n of a result is the outcome of test n, or the result is a sum; expected/ has the numbers. */
#include "zoo.h"

extern "C" {

struct Assembly {
	uint64_t (*function)();
	const char *name;
};

/* Ended by an entry without function. */
extern const Assembly asm_functions[];

}

int
case_asm(int, char **)
{
	uint64_t checksum = 1;
	for (const Assembly *one = asm_functions; one->function; one++) {
		uint64_t result = one->function();
		checksum = checksum * 31 + result;
		say("%s %#llx", one->name, static_cast<unsigned long long>(result));
	}
	say("checksum %#llx", static_cast<unsigned long long>(checksum));
	return 25;
}

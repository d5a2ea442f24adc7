/* A probe to try tracing with: sysctl debug.dtracetest.sdttest=1 fires it (FreeBSD sys/cddl/dev/dtrace/dtrace_test.c). */
#include "sys/sdt.h"
#include "sys/sysctl.h"
#include "sys/types.h"

SDT_PROVIDER_DEFINE(test);
SDT_PROBE_DEFINE6(test, , , sdttest, "int", "int", "int", "int", "int", "int");

static int
dtrace_test_sdttest(int value)
{
	if (value != 0)
		SDT_PROBE6(test, , , sdttest, 1, 2, 3, 4, 5, 6);
	return (0);
}
SYSCTL(sdttest, "debug.dtracetest.sdttest", NULL, dtrace_test_sdttest);

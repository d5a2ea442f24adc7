/* sdt.ko: probes that are written into the code (providers/sdt). */
#include "dtrace_provider.h"

DTRACE_HOST_PROVIDER(sdt);

/* fasttrap.ko: probes in processes (providers/fasttrap). */
#include "dtrace_provider.h"

DTRACE_HOST_PROVIDER(fasttrap);

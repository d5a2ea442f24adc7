/* profile.ko: profile-N and tick-N (providers/profile). */
#include "dtrace_provider.h"

DTRACE_HOST_PROVIDER(profile);

/*
 * Page tables with physical address extension, for its no-execute bit: three levels, with a root of four entries
 * (Intel SDM volume 3, 4.4), all but one the user's. In the root the bits of the rights are reserved.
 */
#define LEVELS 3
#define ROOT_ENTRIES 4
#define USER_ROOT_ENTRIES (ROOT_ENTRIES - 1)
#define ROOT_RIGHTS 0
#define ROOT_IS_CACHED 1

#include "page_tables.h"

#!/usr/sbin/dtrace -s
/* branches.d - small, middling and large requests, with if and else. */
#pragma D option quiet

fbt::malloc:entry
{
	if (arg0 < 64) {
		this->what = "small";
		small++;
	} else if (arg0 < 1024) {
		this->what = "middling";
		middling++;
	} else {
		this->what = "large";
		large++;
	}
	printf("%d is %s\n", arg0, this->what);
}

END { printf("%d small, %d middling, %d large\n", small, middling, large); }

#!/usr/sbin/dtrace -s
/* json.d - texts with structure. */
#pragma D option quiet
#pragma D option strsize=512

BEGIN
{
	this->text = "{\"name\": \"sh\", \"fds\": [0, 1, {\"path\": \"/etc/rc\"}], \"uid\": 0}";
	printf("%s, %s, %d\n", json(this->text, "name"), json(this->text, "fds[2].path"),
	    strtoll(json(this->text, "uid")));
	printf("%s\n", json(this->text, "nosuch") == NULL ? "no such member" : "what?");
	exit(0);
}

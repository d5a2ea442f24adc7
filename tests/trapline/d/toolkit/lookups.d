#!/usr/sbin/dtrace -s
/* lookups.d - directories and last parts of what is looked up. */
#pragma D option quiet

fbt::namei:entry
{
	this->path = copyinstr(arg0);
	this->dir = dirname(this->path);
	this->name = basename(this->path);
	printf("%s in %s: %d characters, %s\n", this->name, this->dir, strlen(this->path),
	    strjoin(toupper(substr(this->name, 0, 1)), substr(this->name, 1)));
	printf("first part: %s\n", strtok(this->path, "/"));
	printf("next part: %s\n", strtok(NULL, "/"));
	printf("%s\n", index(this->path, "motd") >= 0 ? "the message of the day" : "something else");
}

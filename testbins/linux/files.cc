/* Files and directories below /tmp; all of them are gone at the end. */
#include "zoo.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <vector>

namespace {

#define HOME "/tmp/trapline-zoo"

void
clean()
{
	unlink(HOME "/one");
	unlink(HOME "/two");
	unlink(HOME "/link");
	rmdir(HOME "/inner");
	rmdir(HOME);
}

const char *
outcome(int result)
{
	return result < 0 ? strerrorname_np(errno) : "done";
}

} // namespace

PROBEABLE int
write_text(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0640);
	if (fd < 0)
		return -1;
	ssize_t written = write(fd, text, strlen(text));
	return close(fd) ? -1 : static_cast<int>(written);
}

PROBEABLE std::vector<std::string>
list_directory(const char *path)
{
	std::vector<std::string> names;
	DIR *directory = opendir(path);
	if (!directory)
		fail(path);
	while (const dirent *entry = readdir(directory))
		names.push_back(std::string(entry->d_name) + (entry->d_type == DT_DIR ? "/" : entry->d_type == DT_LNK ? "@" : ""));
	closedir(directory);
	std::sort(names.begin(), names.end());
	return names;
}

int
case_files(int, char **)
{
	umask(022);
	clean();
	say("mkdir: %s", outcome(mkdir(HOME, 0755)));
	say("mkdir again: %s", outcome(mkdir(HOME, 0755)));
	say("write: %d", write_text(HOME "/one", "0123456789abcdef"));
	say("write again: %s", outcome(write_text(HOME "/one", "")));

	int fd = open(HOME "/one", O_RDWR);
	char buffer[32] = {};
	say("seek to %d", static_cast<int>(lseek(fd, 4, SEEK_SET)));
	say("read %d: %s", static_cast<int>(read(fd, buffer, 6)), buffer);
	say("at %d", static_cast<int>(lseek(fd, 0, SEEK_CUR)));
	say("end at %d", static_cast<int>(lseek(fd, 0, SEEK_END)));
	say("pwrite: %d", static_cast<int>(pwrite(fd, "PQR", 3, 1)));
	const iovec parts[] = {{const_cast<char *>("gh"), 2}, {const_cast<char *>("ijk"), 3}};
	say("writev: %d", static_cast<int>(writev(fd, parts, 2)));
	say("pread %d: %s", static_cast<int>(pread(fd, buffer, sizeof buffer - 1, 0)), buffer);
	say("ftruncate: %s", outcome(ftruncate(fd, 5)));
	struct stat status;
	fstat(fd, &status);
	say("size %d, mode %o, links %d", static_cast<int>(status.st_size), status.st_mode, static_cast<int>(status.st_nlink));
	int twin = dup(fd);
	lseek(twin, 2, SEEK_SET);
	say("the twin moved it to %d", static_cast<int>(lseek(fd, 0, SEEK_CUR)));
	close(twin);
	close(fd);
	say("read after close: %s", outcome(static_cast<int>(read(fd, buffer, 1))));

	say("symlink: %s", outcome(symlink("two", HOME "/link")));
	say("stat of it: %s", outcome(stat(HOME "/link", &status)));
	say("rename: %s", outcome(rename(HOME "/one", HOME "/two")));
	say("stat of it: %s", outcome(stat(HOME "/link", &status)));
	say("size %d", static_cast<int>(status.st_size));
	say("lstat of it: %s", outcome(lstat(HOME "/link", &status)));
	say("a link: %d", S_ISLNK(status.st_mode));
	memset(buffer, 0, sizeof buffer);
	say("readlink %d: %s", static_cast<int>(readlink(HOME "/link", buffer, sizeof buffer - 1)), buffer);
	say("mkdir inner: %s", outcome(mkdir(HOME "/inner", 0700)));
	for (const std::string &name : list_directory(HOME))
		say("  %s", name.c_str());
	say("chdir: %s", outcome(chdir(HOME "/inner")));
	say("access ../two: %s", outcome(access("../two", R_OK)));
	char where[128];
	say("getcwd: %s", getcwd(where, sizeof where));
	say("rmdir, not empty: %s", outcome(rmdir(HOME)));
	say("unlink: %s", outcome(unlink(HOME "/two")));
	say("unlink again: %s", outcome(unlink(HOME "/two")));
	say("open: %s", outcome(open(HOME "/two", O_RDONLY)));
	chdir("/");
	clean();
	say("all gone: %s", outcome(stat(HOME, &status)));
	return 19;
}

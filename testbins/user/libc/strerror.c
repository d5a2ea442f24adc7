/* What errno says. */
#include "libc.h"

const char *
strerror(int error)
{
	static const char *const messages[] = {
		[0] = "No error: 0", [EPERM] = "Operation not permitted", [ENOENT] = "No such file or directory",
		[ESRCH] = "No such process", [EINTR] = "Interrupted system call", [EIO] = "Input/output error",
		[ENXIO] = "Device not configured", [E2BIG] = "Argument list too long", [ENOEXEC] = "Exec format error",
		[EBADF] = "Bad file descriptor", [ECHILD] = "No child processes", [EDEADLK] = "Resource deadlock avoided", [ENOMEM] = "Cannot allocate memory",
		[EACCES] = "Permission denied", [EFAULT] = "Bad address", [EBUSY] = "Device busy", [EEXIST] = "File exists",
		[EXDEV] = "Cross-device link", [ENODEV] = "Operation not supported by device", [ENOTDIR] = "Not a directory",
		[EISDIR] = "Is a directory", [EINVAL] = "Invalid argument", [ENFILE] = "Too many open files in system",
		[EMFILE] = "Too many open files", [ENOTTY] = "Inappropriate ioctl for device", [ETXTBSY] = "Text file busy",
		[EFBIG] = "File too large", [ENOSPC] = "No space left on device", [ESPIPE] = "Illegal seek",
		[EROFS] = "Read-only file system", [EMLINK] = "Too many links", [EPIPE] = "Broken pipe",
		[EAGAIN] = "Resource temporarily unavailable",
		[EALREADY] = "Operation already in progress", [ENOTSOCK] = "Socket operation on non-socket",
		[EDESTADDRREQ] = "Destination address required", [EMSGSIZE] = "Message too long",
		[EPROTONOSUPPORT] = "Protocol not supported", [EAFNOSUPPORT] = "Address family not supported by protocol family",
		[EADDRINUSE] = "Address already in use", [EADDRNOTAVAIL] = "Can't assign requested address",
		[ENETUNREACH] = "Network is unreachable", [ECONNRESET] = "Connection reset by peer",
		[EISCONN] = "Socket is already connected", [ENOTCONN] = "Socket is not connected",
		[ECONNREFUSED] = "Connection refused", [EOPNOTSUPP] = "Operation not supported",
		[ENAMETOOLONG] = "File name too long", [ENOTEMPTY] = "Directory not empty", [ENOSYS] = "Function not implemented",
	};
	static char unknown[32];

	if (error >= 0 && error < (int)nitems(messages) && messages[error] != NULL)
		return (messages[error]);
	snprintf(unknown, sizeof(unknown), "Unknown error: %d", error);
	return (unknown);
}

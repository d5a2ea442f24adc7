/* The text of an error number, as from strerror(3): strerror[errno] (FreeBSD cddl/lib/libdtrace/errno.d). */

#pragma D depends_on library errno.d

inline string strerror[int error] =
    error == 0 ? "Success" :
    error == EPERM ? "Operation not permitted" :
    error == ENOENT ? "No such file or directory" :
    error == ESRCH ? "No such process" :
    error == EINTR ? "Interrupted system call" :
    error == EIO ? "Input/output error" :
    error == ENXIO ? "Device not configured" :
    error == E2BIG ? "Argument list too long" :
    error == ENOEXEC ? "Exec format error" :
    error == EBADF ? "Bad file descriptor" :
    error == ECHILD ? "No child processes" :
    error == EDEADLK ? "Resource deadlock avoided" :
    error == ENOMEM ? "Cannot allocate memory" :
    error == EACCES ? "Permission denied" :
    error == EFAULT ? "Bad address" :
    error == ENOTBLK ? "Block device required" :
    error == EBUSY ? "Device busy" :
    error == EEXIST ? "File exists" :
    error == EXDEV ? "Cross-device link" :
    error == ENODEV ? "Operation not supported by device" :
    error == ENOTDIR ? "Not a directory" :
    error == EISDIR ? "Is a directory" :
    error == EINVAL ? "Invalid argument" :
    error == ENFILE ? "Too many open files in system" :
    error == EMFILE ? "Too many open files" :
    error == ENOTTY ? "Inappropriate ioctl for device" :
    error == ETXTBSY ? "Text file busy" :
    error == EFBIG ? "File too large" :
    error == ENOSPC ? "No space left on device" :
    error == ESPIPE ? "Illegal seek" :
    error == EROFS ? "Read-only file system" :
    error == EMLINK ? "Too many links" :
    error == EPIPE ? "Broken pipe" :
    error == EDOM ? "Numerical argument out of domain" :
    error == ERANGE ? "Result too large" :
    error == EAGAIN ? "Resource temporarily unavailable" :
    error == EINPROGRESS ? "Operation now in progress" :
    error == EALREADY ? "Operation already in progress" :
    error == ENOTSOCK ? "Socket operation on non-socket" :
    error == EDESTADDRREQ ? "Destination address required" :
    error == EMSGSIZE ? "Message too long" :
    error == EPROTOTYPE ? "Protocol wrong type for socket" :
    error == ENOPROTOOPT ? "Protocol not available" :
    error == EPROTONOSUPPORT ? "Protocol not supported" :
    error == ESOCKTNOSUPPORT ? "Socket type not supported" :
    error == EOPNOTSUPP ? "Operation not supported" :
    error == EPFNOSUPPORT ? "Protocol family not supported" :
    error == EAFNOSUPPORT ? "Address family not supported by protocol family" :
    error == EADDRINUSE ? "Address already in use" :
    error == EADDRNOTAVAIL ? "Can't assign requested address" :
    error == ENETDOWN ? "Network is down" :
    error == ENETUNREACH ? "Network is unreachable" :
    error == ENETRESET ? "Network dropped connection on reset" :
    error == ECONNABORTED ? "Software caused connection abort" :
    error == ECONNRESET ? "Connection reset by peer" :
    error == ENOBUFS ? "No buffer space available" :
    error == EISCONN ? "Socket is already connected" :
    error == ENOTCONN ? "Socket is not connected" :
    error == ESHUTDOWN ? "Can't send after socket shutdown" :
    error == ETOOMANYREFS ? "Too many references: can't splice" :
    error == ETIMEDOUT ? "Operation timed out" :
    error == ECONNREFUSED ? "Connection refused" :
    error == ELOOP ? "Too many levels of symbolic links" :
    error == ENAMETOOLONG ? "File name too long" :
    error == EHOSTDOWN ? "Host is down" :
    error == EHOSTUNREACH ? "No route to host" :
    error == ENOTEMPTY ? "Directory not empty" :
    error == EPROCLIM ? "Too many processes" :
    error == EUSERS ? "Too many users" :
    error == EDQUOT ? "Disc quota exceeded" :
    error == ESTALE ? "Stale NFS file handle" :
    error == EREMOTE ? "Too many levels of remote in path" :
    error == EBADRPC ? "RPC struct is bad" :
    error == ERPCMISMATCH ? "RPC version wrong" :
    error == EPROGUNAVAIL ? "RPC prog. not avail" :
    error == EPROGMISMATCH ? "Program version wrong" :
    error == EPROCUNAVAIL ? "Bad procedure for program" :
    error == ENOLCK ? "No locks available" :
    error == ENOSYS ? "Function not implemented" :
    error == EFTYPE ? "Inappropriate file type or format" :
    error == EAUTH ? "Authentication error" :
    error == ENEEDAUTH ? "Need authenticator" :
    error == EIDRM ? "Identifier removed" :
    error == ENOMSG ? "No message of desired type" :
    error == EOVERFLOW ? "Value too large to be stored in data type" :
    error == ECANCELED ? "Operation canceled" :
    error == EILSEQ ? "Illegal byte sequence" :
    error == ENOATTR ? "Attribute not found" :
    error == EDOOFUS ? "Programming error" :
    error == EBADMSG ? "Bad message" :
    error == EMULTIHOP ? "Multihop attempted" :
    error == ENOLINK ? "Link has been severed" :
    error == EPROTO ? "Protocol error" :
    error == ENOTCAPABLE ? "Capabilities insufficient" :
    error == ECAPMODE ? "Not permitted in capability mode" :
    error == ENOTRECOVERABLE ? "State not recoverable" :
    error == EOWNERDEAD ? "Previous owner died" :
    error == EINTEGRITY ? "Integrity check failed" :
    error == ERESTART ? "restart syscall" :
    error == EJUSTRETURN ? "don't modify regs, just return" :
    error == ENOIOCTL ? "ioctl not handled by this layer" :
    error == EDIRIOCTL ? "do direct ioctl in GEOM" :
    error == ERELOOKUP ? "retry the directory lookup" :
    "Unknown error";

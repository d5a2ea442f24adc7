/* The kind of CPU, as psrinfo(8) of illumos tells it. */

inline string __processor_type = "i386";
inline string __fpu_type = "i387 compatible";

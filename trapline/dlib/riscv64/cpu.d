/* The kind of CPU, as psrinfo(8) of illumos tells it. */

inline string __processor_type = "riscv64";
inline string __fpu_type = "rv64fd";

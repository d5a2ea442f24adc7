# profile and tick (section 20)

$ -x amin=Evolving/Evolving/Common -x errtags -n 'dtrace:::BEGIN { trace(`ticks); }'
!dtrace: invalid probe specifier ...: [D_ATTR_MIN] attributes Private/Private/Unknown are less than the minimum Evolving/Evolving/Common
= 1

$ -x amin=Evolving/Evolving/Common -x errtags -n 'BEGIN { trace(1); }'
!dtrace: invalid probe specifier ...: [D_ATTR_MIN] attributes Unstable/Unstable/Common are less than the minimum Evolving/Evolving/Common
= 1

$ -x amin=Evolving/Evolving/Common -q -n 'dtrace:::BEGIN { trace(1); exit(0); }'
|1

$ -x amin=foo -n 'BEGIN { trace(`ticks); }'
!dtrace: failed to set -x amin: Invalid value for specified option
= 1

$ -x timeout=1ms -q -n 'tick-200us { printf("t\n"); }'
|t
|t
|t
|t
|t
|

$ -q -n 'tick-1000 { @ = count(); } tick-2ms { printa(@); trunc(@); } tick-5ms { exit(3); }'
|
|                3
|

$ -q -n 'profile-1000 { @[arg0 ? "kernel" : "user"] = count(); }'
|
|  kernel                                                            3

$ -n 'tick-100us'
!dtrace: invalid probe specifier tick-100us: probe description :::tick-100us does not match any probes
= 1

$ -l -n tick-7s
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   27    profile                                                     tick-7s

$ -l -n 'tick-7'
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   27    profile                                                     tick-7

$ -l -n 'tick-7s,profile-3msec,tick-2MIN,profile-5Hz'
|   ID   PROVIDER            MODULE                          FUNCTION NAME
|   27    profile                                                     tick-7s
|   28    profile                                                     profile-3msec
|   29    profile                                                     tick-2MIN
|   30    profile                                                     profile-5Hz

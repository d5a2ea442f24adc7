# Packets on the loopback: ip, tcp and udp.

NAME a connection by the states of both ends
RUN trapline dtrace -qn 'tcp:::state-change { printf("%s -> %s\n", tcp_state_string[args[5]->tcps_state], tcp_state_string[args[3]->tcps_state]); }' -c 'echod 7 & sleep 0.01; nc 127.0.0.1 7 < /etc/motd'
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|state-closed -> state-listen
|state-closed -> state-syn-sent
|state-closed -> state-syn-received
|state-syn-sent -> state-established
|state-syn-received -> state-established
|state-established -> state-fin-wait-1
|state-established -> state-close-wait
|state-fin-wait-1 -> state-fin-wait-2
|state-close-wait -> state-last-ack
|state-fin-wait-2 -> state-time-wait
|state-time-wait -> state-closed
|state-last-ack -> state-closed
|state-listen -> state-closed
|
STDERR

NAME segments with their addresses, ports, flags and lengths
RUN trapline dtrace -qn 'tcp:::send { printf("%s:%d > %s:%d flags %x, %d bytes\n", args[2]->ip_saddr, args[4]->tcp_sport, args[2]->ip_daddr, args[4]->tcp_dport, args[4]->tcp_flags, args[2]->ip_plength - args[4]->tcp_offset); }' -c 'nc -l 99 & sleep 0.01; echo hello | nc 99'
EXPECT
|hello
|127.0.0.1:49152 > 127.0.0.1:99 flags 2, 0 bytes
|127.0.0.1:99 > 127.0.0.1:49152 flags 12, 0 bytes
|127.0.0.1:49152 > 127.0.0.1:99 flags 10, 0 bytes
|127.0.0.1:49152 > 127.0.0.1:99 flags 18, 6 bytes
|127.0.0.1:99 > 127.0.0.1:49152 flags 10, 0 bytes
|127.0.0.1:49152 > 127.0.0.1:99 flags 11, 0 bytes
|127.0.0.1:99 > 127.0.0.1:49152 flags 10, 0 bytes
|127.0.0.1:99 > 127.0.0.1:49152 flags 11, 0 bytes
|127.0.0.1:49152 > 127.0.0.1:99 flags 10, 0 bytes
|
STDERR

NAME a port where nothing listens
RUN trapline dtrace -qn 'tcp:::connect-request, tcp:::connect-refused, tcp:::accept-refused { printf("%s, port %d, active %d\n", probename, args[4]->tcp_dport, args[3]->tcps_active); }' -c 'nc 9 < /dev/null || true'
EXPECT
|nc: connect to port 9: Connection refused
|connect-request, port 9, active 1
|accept-refused, port 9, active 0
|connect-refused, port 49152, active 1
|
STDERR

NAME datagrams, and the packets that carry them
RUN trapline dtrace -qn 'udp::: { printf("%s %d > %d, %d bytes\n", probename, args[4]->udp_sport, args[4]->udp_dport, args[4]->udp_length); } ip:::receive { @[args[3]->if_name, args[4]->ipv4_protostr, args[4]->ipv4_length] = count(); }' -c 'echod -u 7 2 & sleep 0.01; seq 9 10 | nc -u 7'
EXPECT
|9
|10
|send 49152 > 7, 9 bytes
|receive 49152 > 7, 9 bytes
|send 7 > 49152, 9 bytes
|receive 7 > 49152, 9 bytes
|send 49152 > 7, 10 bytes
|receive 49152 > 7, 10 bytes
|send 7 > 49152, 10 bytes
|receive 7 > 49152, 10 bytes
|
|  lo0                                                 UDP                                                   29                2
|  lo0                                                 UDP                                                   30                2
STDERR

NAME which process sends
RUN trapline dtrace -qn 'ip:::send { @[args[1]->cs_pid, execname, args[4]->ipv4_saddr] = sum(args[4]->ipv4_length); }' -c 'echod 7 & sleep 0.01; echo hello | nc 7'
EXPECT
|hello
|
|        8  echod                                               127.0.0.1                                                        80
|        5  echod                                               127.0.0.1                                                        86
|        5  nc                                                  127.0.0.1                                                       120
|        8  nc                                                  127.0.0.1                                                       166
STDERR

NAME the header of version 6, which no packet here has
RUN trapline dtrace -qn 'BEGIN { this->h = (struct ip6_hdr *)alloca(sizeof (struct ip6_hdr)); this->h->ip6_flow = htonl(0x61234567); this->h->ip6_nxt = IPPROTO_ICMPV6; this->h->ip6_hlim = 64; this->h->ip6_plen = htons(8); this->h->ip6_src[15] = 1; this->h->ip6_dst[0] = 0xfe; this->h->ip6_dst[1] = 0x80; printf("version %d, class %x, flow %x, %d bytes, ", xlate <ipv6info_t *> (this->h)->ipv6_ver, xlate <ipv6info_t *> (this->h)->ipv6_tclass, xlate <ipv6info_t *> (this->h)->ipv6_flow, xlate <ipv6info_t *> (this->h)->ipv6_plen); printf("%d is %s, %d hops, ", xlate <ipv6info_t *> (this->h)->ipv6_nexthdr, xlate <ipv6info_t *> (this->h)->ipv6_nextstr, xlate <ipv6info_t *> (this->h)->ipv6_hlim); printf("%s > %s, %x %s\n", xlate <ipv6info_t *> (this->h)->ipv6_saddr, xlate <ipv6info_t *> (this->h)->ipv6_daddr, xlate <ipv6info_t *> (this->h)->ipv6_dst->s6_addr[0], protocols[3]); exit(0); }'
EXPECT
|version 6, class 12, flow 34567, 8 bytes, 58 is ICMPV6, 64 hops, ::1 > fe80::, fe <unknown>
|
STDERR

NAME either version's protocol
RUN trapline dtrace -qn 'ip::: { @[args[2]->ip_ver == 4 ? args[4]->ipv4_protostr : args[5]->ipv6_nextstr, args[5]->ipv6_saddr] = count(); }' -c 'echod -u 7 1 & sleep 0.01; echo hi | nc -u 7'
EXPECT
|hi
|
|  UDP                                                 <null>                                                            4
STDERR

NAME what the system counts
RUN trapline dtrace -qn 'sysinfo:::sysfork, sysinfo:::sysvfork, sysinfo:::sysexec, sysinfo:::readch, sysinfo:::writech { @[probename] = sum(arg0); } vminfo:::cow_fault /execname == "cat"/ { @["cat copies pages"] = sum(arg0); }' -c 'cat /etc/motd | wc -c'
EXPECT
|      71
|
|  cat copies pages                                                  1
|  sysexec                                                           3
|  sysfork                                                           3
|  writech                                                          80
|  readch                                                          187
STDERR

NAME the counters of the network
RUN trapline dtrace -qn 'mib:::tcpActiveOpens, mib:::tcpPassiveOpens, mib:::tcpOutDataBytes, mib:::tcpInDataInorderBytes, mib:::tcpOutRsts, mib:::tcpAttemptFails, mib:::udpHCOutDatagrams, mib:::udpHCInDatagrams { @[probename] = sum(arg0); }' -c 'echod 7 1 & echod -u 8 1 & sleep 0.01; echo hello | nc 7; echo hi | nc -u 8; nc 9; wait'
EXPECT
|hello
|hi
|nc: connect to port 9: Connection refused
|
|  tcpAttemptFails                                                   1
|  tcpOutRsts                                                        1
|  tcpPassiveOpens                                                   1
|  tcpActiveOpens                                                    2
|  udpHCInDatagrams                                                  2
|  udpHCOutDatagrams                                                 2
|  tcpInDataInorderBytes                                            12
|  tcpOutDataBytes                                                  12
STDERR

NAME a datagram for an unused port
RUN trapline dtrace -qn 'mib:::udpNoPorts { printf("%d for no port\n", arg0); exit(0); }' -c 'echo hi | nc -u 9'
EXPECT
|1 for no port
|
STDERR

NAME what operations of file systems have done
RUN trapline dtrace -qn 'fsinfo:::read, fsinfo:::write /execname == "cat"/ { @[probename, args[0]->fi_pathname, args[0]->fi_fs] = sum(arg1); }' -c 'cat /etc/motd'
EXPECT
|Welcome to the teaching kernel.
|Everything you see here may be probed.
|
|  read                                                /etc/motd                                           memfs                                                            71
|  write                                               /dev/console                                        devfs                                                            71
STDERR

NAME illumos' names for members and variables
RUN trapline dtrace -qn 'vfs:vop:vop_readdir:entry /args[0]->v_path != 0/ { printf("%s by %s (%s), child of %s\n", stringof(args[0]->v_path), curthread->t_procp->p_user.u_comm, curthread->t_procp->p_user.u_psargs, stringof((char *)curthread->t_procp->p_parent->p_user.u_comm)); printf("%d waiting on CPU %d of %d, %d MHz\n", curthread->t_cpu->cpu_disp->disp_nrunnable, curthread->t_cpu->cpu_id, `ncpus, curcpu->cpu_info.pi_clock); printf("%d pages of swap space, page size %d\n", `k_anoninfo.ani_phys_max, `_pagesize); exit(0); }' -c 'ls /etc > /d'
EXPECT
|/etc by ls (ls /etc), child of sh
|0 waiting on CPU 0 of 1, 1000 MHz
|0 pages of swap space, page size 4096
|
STDERR

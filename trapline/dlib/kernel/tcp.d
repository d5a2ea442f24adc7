/* Streams: the arguments of the tcp provider (FreeBSD cddl/lib/libdtrace/tcp.d). */

#pragma D depends_on module kernel
#pragma D depends_on library ip.d

inline int TH_FIN = 0x01;
inline int TH_SYN = 0x02;
inline int TH_RST = 0x04;
inline int TH_PUSH = 0x08;
inline int TH_ACK = 0x10;
inline int TH_URG = 0x20;
inline int TH_ECE = 0x40;
inline int TH_CWR = 0x80;

inline int TCPS_CLOSED = 0;
inline int TCPS_LISTEN = 1;
inline int TCPS_SYN_SENT = 2;
inline int TCPS_SYN_RECEIVED = 3;
inline int TCPS_ESTABLISHED = 4;
inline int TCPS_CLOSE_WAIT = 5;
inline int TCPS_FIN_WAIT_1 = 6;
inline int TCPS_CLOSING = 7;
inline int TCPS_LAST_ACK = 8;
inline int TCPS_FIN_WAIT_2 = 9;
inline int TCPS_TIME_WAIT = 10;

inline int TCP_STATE_CLOSED = TCPS_CLOSED;
inline int TCP_STATE_LISTEN = TCPS_LISTEN;
inline int TCP_STATE_SYN_SENT = TCPS_SYN_SENT;
inline int TCP_STATE_SYN_RECEIVED = TCPS_SYN_RECEIVED;
inline int TCP_STATE_ESTABLISHED = TCPS_ESTABLISHED;
inline int TCP_STATE_CLOSE_WAIT = TCPS_CLOSE_WAIT;
inline int TCP_STATE_FIN_WAIT_1 = TCPS_FIN_WAIT_1;
inline int TCP_STATE_CLOSING = TCPS_CLOSING;
inline int TCP_STATE_LAST_ACK = TCPS_LAST_ACK;
inline int TCP_STATE_FIN_WAIT_2 = TCPS_FIN_WAIT_2;
inline int TCP_STATE_TIME_WAIT = TCPS_TIME_WAIT;

inline string tcp_state_string[int32_t state] =
    state == TCPS_CLOSED ? "state-closed" :
    state == TCPS_LISTEN ? "state-listen" :
    state == TCPS_SYN_SENT ? "state-syn-sent" :
    state == TCPS_SYN_RECEIVED ? "state-syn-received" :
    state == TCPS_ESTABLISHED ? "state-established" :
    state == TCPS_CLOSE_WAIT ? "state-close-wait" :
    state == TCPS_FIN_WAIT_1 ? "state-fin-wait-1" :
    state == TCPS_CLOSING ? "state-closing" :
    state == TCPS_LAST_ACK ? "state-last-ack" :
    state == TCPS_FIN_WAIT_2 ? "state-fin-wait-2" :
    state == TCPS_TIME_WAIT ? "state-time-wait" : "<unknown>";

typedef struct tcpsinfo {
	uintptr_t tcps_addr;
	int tcps_local;		/* both ends are on this machine */
	int tcps_active;	/* this end has requested the connection */
	uint16_t tcps_lport;
	uint16_t tcps_rport;
	string tcps_laddr;
	string tcps_raddr;
	int32_t tcps_state;
	uint32_t tcps_iss;
	uint32_t tcps_irs;
	uint32_t tcps_suna;	/* sent and not acknowledged, from here on */
	uint32_t tcps_smax;	/* sent so far */
	uint32_t tcps_snxt;	/* to be sent next */
	uint32_t tcps_rack;
	uint32_t tcps_rnxt;	/* expected next */
	uint32_t tcps_swnd;	/* the room of the other side */
	int32_t tcps_snd_ws;
	uint32_t tcps_radv;
	uint32_t tcps_rwnd;
	int32_t tcps_rcv_ws;
	uint32_t tcps_cwnd;	/* no link can be congested */
	uint32_t tcps_mss;
	int tcps_retransmit;	/* nothing is ever sent again */
	/* The rest is about congestion, urgent data, lost segments and round trips: the loopback has none. */
	uint32_t tcps_swl1;
	uint32_t tcps_swl2;
	uint32_t tcps_rup;
	uint32_t tcps_cwnd_ssthresh;
	uint32_t tcps_srecover;
	uint32_t tcps_sack_fack;
	uint32_t tcps_sack_snxt;
	uint32_t tcps_rto;
	int tcps_srtt;
	int tcps_debug;		/* SO_DEBUG is set: this option does not exist */
	int tcps_cookie;
	int32_t tcps_dupacks;
	uint32_t tcps_rtttime;
	uint32_t tcps_rtseq;
	uint32_t tcps_ts_recent;
} tcpsinfo_t;

typedef struct tcplsinfo {
	int32_t tcps_state;	/* the one before */
} tcplsinfo_t;

typedef struct tcpinfo {
	uint16_t tcp_sport;
	uint16_t tcp_dport;
	uint32_t tcp_seq;
	uint32_t tcp_ack;
	uint8_t tcp_offset;	/* bytes of the header */
	uint8_t tcp_flags;
	uint16_t tcp_window;
	uint16_t tcp_checksum;
	uint16_t tcp_urgent;
	struct tcphdr *tcp_hdr;
} tcpinfo_t;

/* FreeBSD's name for a header whose numbers the input path has turned already: ours never turns them. */
typedef struct tcpinfoh {
	uint16_t tcp_sport;
	uint16_t tcp_dport;
	uint32_t tcp_seq;
	uint32_t tcp_ack;
	uint8_t tcp_offset;
	uint8_t tcp_flags;
	uint16_t tcp_window;
	uint16_t tcp_checksum;
	uint16_t tcp_urgent;
	struct tcphdr *tcp_hdr;
} tcpinfoh_t;

translator csinfo_t < struct tcpcb *p > {
	cs_addr = p == NULL ? 0 : (uintptr_t)p->t_inpcb;
	cs_cid = p == NULL ? 0 : (uint64_t)p->t_inpcb;
	cs_pid = p == NULL ? 0 : p->t_inpcb->inp_socket->so_pid;
	cs_zoneid = 0;
};

translator tcpsinfo_t < struct tcpcb *p > {
	tcps_addr = (uintptr_t)p;
	tcps_local = 1;
	tcps_active = p == NULL ? 0 : (p->t_flags & 0x1000000) != 0;
	tcps_lport = p == NULL ? 0 : ntohs(p->t_inpcb->inp_lport);
	tcps_rport = p == NULL ? 0 : ntohs(p->t_inpcb->inp_fport);
	tcps_laddr = p == NULL ? "<unknown>" : inet_ntoa(&p->t_inpcb->inp_laddr.s_addr);
	tcps_raddr = p == NULL ? "<unknown>" : inet_ntoa(&p->t_inpcb->inp_faddr.s_addr);
	tcps_state = p == NULL ? TCPS_CLOSED : p->t_state;
	tcps_iss = p == NULL ? 0 : p->iss;
	tcps_irs = p == NULL ? 0 : p->irs;
	tcps_suna = p == NULL ? 0 : p->snd_una;
	tcps_smax = p == NULL ? 0 : p->snd_max;
	tcps_snxt = p == NULL ? 0 : p->snd_nxt;
	tcps_rack = p == NULL ? 0 : p->rcv_nxt;
	tcps_rnxt = p == NULL ? 0 : p->rcv_nxt;
	tcps_swnd = p == NULL ? 0 : p->snd_wnd;
	tcps_snd_ws = 0;
	tcps_radv = p == NULL ? 0 : p->rcv_adv;
	tcps_rwnd = p == NULL ? 0 : p->rcv_wnd;
	tcps_rcv_ws = 0;
	tcps_cwnd = p == NULL ? 0 : p->snd_wnd;
	tcps_mss = p == NULL ? 0 : p->t_maxseg;
	tcps_retransmit = 0;
	tcps_swl1 = 0;
	tcps_swl2 = 0;
	tcps_rup = 0;
	tcps_cwnd_ssthresh = 0;
	tcps_srecover = 0;
	tcps_sack_fack = 0;
	tcps_sack_snxt = 0;
	tcps_rto = 0;
	tcps_srtt = 0;
	tcps_debug = 0;
	tcps_cookie = 0;
	tcps_dupacks = 0;
	tcps_rtttime = 0;
	tcps_rtseq = 0;
	tcps_ts_recent = 0;
};

translator tcplsinfo_t < int s > {
	tcps_state = s;
};

translator tcpinfo_t < struct tcphdr *p > {
	tcp_sport = p == NULL ? 0 : ntohs(p->th_sport);
	tcp_dport = p == NULL ? 0 : ntohs(p->th_dport);
	tcp_seq = p == NULL ? 0 : ntohl(p->th_seq);
	tcp_ack = p == NULL ? 0 : ntohl(p->th_ack);
	tcp_offset = p == NULL ? 0 : p->th_off << 2;
	tcp_flags = p == NULL ? 0 : p->th_flags;
	tcp_window = p == NULL ? 0 : ntohs(p->th_win);
	tcp_checksum = p == NULL ? 0 : ntohs(p->th_sum);
	tcp_urgent = p == NULL ? 0 : ntohs(p->th_urp);
	tcp_hdr = p;
};

translator tcpinfoh_t < struct tcphdr *p > {
	tcp_sport = p == NULL ? 0 : ntohs(p->th_sport);
	tcp_dport = p == NULL ? 0 : ntohs(p->th_dport);
	tcp_seq = p == NULL ? 0 : ntohl(p->th_seq);
	tcp_ack = p == NULL ? 0 : ntohl(p->th_ack);
	tcp_offset = p == NULL ? 0 : p->th_off << 2;
	tcp_flags = p == NULL ? 0 : p->th_flags;
	tcp_window = p == NULL ? 0 : ntohs(p->th_win);
	tcp_checksum = p == NULL ? 0 : ntohs(p->th_sum);
	tcp_urgent = p == NULL ? 0 : ntohs(p->th_urp);
	tcp_hdr = p;
};

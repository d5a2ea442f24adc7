/* The headers, and a protocol's end of a socket (FreeBSD sys/netinet: ip.h, tcp.h, udp.h, in_pcb.h, tcp_var.h, tcp_fsm.h). */
#ifndef NETINET_IN_PCB_H
#define NETINET_IN_PCB_H

#include "sys/socketvar.h"

struct ifnet {
	char if_xname[16];
	int if_index;
	int if_mtu;
	struct in_addr if_addr;
};
extern struct ifnet lo0;

struct ip {
	uint8_t ip_hl : 4, ip_v : 4;
	uint8_t ip_tos;
	uint16_t ip_len, ip_id, ip_off;
	uint8_t ip_ttl, ip_p;
	uint16_t ip_sum;
	struct in_addr ip_src, ip_dst;
};
#define IPVERSION 4
#define IPDEFTTL 64
#define IP_DF 0x4000

struct ip6_hdr { /* there is no IPv6; the probes' arguments name it */
	uint32_t ip6_flow;
	uint16_t ip6_plen;
	uint8_t ip6_nxt, ip6_hlim;
	uint8_t ip6_src[16], ip6_dst[16];
};

struct udphdr {
	uint16_t uh_sport, uh_dport, uh_ulen, uh_sum;
};

struct tcphdr {
	uint16_t th_sport, th_dport;
	uint32_t th_seq, th_ack;
	uint8_t th_x2 : 4, th_off : 4;
	uint8_t th_flags;
	uint16_t th_win, th_sum, th_urp;
};
#define TH_FIN 0x01
#define TH_SYN 0x02
#define TH_RST 0x04
#define TH_PUSH 0x08
#define TH_ACK 0x10

enum { TCPS_CLOSED, TCPS_LISTEN, TCPS_SYN_SENT, TCPS_SYN_RECEIVED, TCPS_ESTABLISHED, TCPS_CLOSE_WAIT, TCPS_FIN_WAIT_1,
	TCPS_CLOSING, TCPS_LAST_ACK, TCPS_FIN_WAIT_2, TCPS_TIME_WAIT, TCP_NSTATES };

TAILQ_HEAD(inpcbhead, inpcb);

struct inpcb {
	TAILQ_ENTRY(inpcb) inp_list;
	struct inpcbhead *inp_head;
	struct socket *inp_socket;
	struct in_addr inp_laddr, inp_faddr;
	uint16_t inp_lport, inp_fport;
	struct tcpcb *inp_ppcb; /* of TCP */
};

struct tcpcb {
	struct inpcb *t_inpcb;
	int t_state;
	uint32_t t_flags;
	uint32_t iss, irs;			/* first sequence numbers, ours and theirs */
	uint32_t snd_una, snd_nxt, snd_max;	/* not acknowledged, to be sent, sent so far */
	uint32_t snd_wnd;			/* what they have room for */
	uint32_t rcv_nxt, rcv_adv;		/* expected, and the end of the room we told of */
	uint32_t rcv_wnd;
	uint32_t t_maxseg;
};
#define TF_ACKNOW 0x0001
#define TF_SENTFIN 0x0010
#define TF_ACTIVE 0x1000000 /* connected, not accepted */

extern struct inpcbhead tcb, udb;

int in_pcballoc(struct socket *so, struct inpcbhead *head);
int in_pcbbind(struct inpcb *inp, const struct sockaddr_in *nam);
int in_pcbconnect(struct inpcb *inp, const struct sockaddr_in *nam);
struct inpcb *in_pcblookup(struct inpcbhead *head, struct in_addr faddr, uint16_t fport, struct in_addr laddr, uint16_t lport);
void in_pcbfree(struct inpcb *inp);

uint16_t in_cksum(const void *data, int n, uint32_t sum);
uint32_t in_pseudo(struct in_addr a, struct in_addr b, uint32_t proto_and_length);
int ip_output(struct mbuf *m, struct in_addr src, struct in_addr dst, int protocol, void *cs);
void ip_input(struct mbuf *m);
int if_simloop(struct ifnet *ifp, struct mbuf *m);
void tcp_input(struct mbuf *m);
int tcp_output(struct tcpcb *tp);
void udp_input(struct mbuf *m);

#endif

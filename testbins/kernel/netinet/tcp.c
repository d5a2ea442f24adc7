/*
 * Streams (FreeBSD sys/netinet: tcp_input.c, tcp_output.c, tcp_subr.c, tcp_usrreq.c). Nothing is lost or overtaken on
 * lo0, so there are no timers: nothing is sent again, a zero window needs no probing, and TIME_WAIT is over at once.
 */
#include "netinet/in_pcb.h"
#include "netinet/in_kdtrace.h"
#include "sys/cpuvar.h"
#include "sys/errno.h"
#include "sys/malloc.h"
#include "sys/systm.h"

SDT_PROVIDER_DEFINE(tcp);
SDT_PROBE_DEFINE_TCP(accept__established);
SDT_PROBE_DEFINE_TCP(accept__refused);
SDT_PROBE_DEFINE_TCP(connect__established);
SDT_PROBE_DEFINE_TCP(connect__refused);
SDT_PROBE_DEFINE_TCP(connect__request);
SDT_PROBE_DEFINE_TCP(receive);
SDT_PROBE_DEFINE_TCP(send);
SDT_PROBE_DEFINE_TCP_STATE(state__change);
MALLOC_DECLARE(M_PCB);

#define TCP_MAXSEG 4096

struct inpcbhead tcb = TAILQ_HEAD_INITIALIZER(tcb);

/* The flags a state sends with. */
static const uint8_t tcp_outflags[TCP_NSTATES] = {
	[TCPS_CLOSED] = TH_RST | TH_ACK, [TCPS_LISTEN] = 0, [TCPS_SYN_SENT] = TH_SYN, [TCPS_SYN_RECEIVED] = TH_SYN | TH_ACK,
	[TCPS_ESTABLISHED] = TH_ACK, [TCPS_CLOSE_WAIT] = TH_ACK, [TCPS_FIN_WAIT_1] = TH_FIN | TH_ACK, [TCPS_CLOSING] = TH_FIN | TH_ACK,
	[TCPS_LAST_ACK] = TH_FIN | TH_ACK, [TCPS_FIN_WAIT_2] = TH_ACK, [TCPS_TIME_WAIT] = TH_ACK,
};

static struct socket *
tp_socket(const struct tcpcb *tp)
{
	return (tp->t_inpcb->inp_socket);
}

static __noinline void
tcp_state_change(struct tcpcb *tp, int newstate)
{
	int old = tp->t_state;

	tp->t_state = newstate;
	SDT_PROBE6(tcp, , , state__change, NULL, tp, NULL, tp, NULL, old);
}

static __noinline struct tcpcb *
tcp_newtcpcb(struct inpcb *inp)
{
	static uint32_t tcp_iss = 0x10000; /* the same in every run */
	struct tcpcb *tp = malloc(sizeof(*tp), M_PCB, M_WAITOK | M_ZERO);

	tp->t_inpcb = inp;
	tp->t_maxseg = TCP_MAXSEG;
	tp->iss = tp->snd_una = tp->snd_nxt = tp->snd_max = tcp_iss += 0x10000;
	inp->inp_ppcb = tp;
	return (tp);
}

/* The connection is over: the pcb goes, and the socket if no descriptor has it. */
static __noinline void
tcp_close(struct tcpcb *tp)
{
	struct socket *so = tp_socket(tp);

	if (tp->t_state != TCPS_CLOSED)
		tcp_state_change(tp, TCPS_CLOSED);
	soisdisconnected(so);
	in_pcbfree(tp->t_inpcb);
	if (so->so_state & SS_NOFDREF)
		sofree(so);
}

/* Sends a segment: n bytes from offset in the send buffer. tp NULL: the answer to what is for no connection. */
static __noinline int
tcp_send_segment(struct tcpcb *tp, struct in_addr laddr, struct in_addr faddr, const struct tcphdr *header, unsigned offset, unsigned n)
{
	struct mbuf *m = m_gethdr(n);
	struct tcphdr *th;
	struct ip *ip;

	if (n > 0)
		sbcopy(&tp_socket(tp)->so_snd, offset, m->m_data, n);
	m_prepend(m, sizeof(*th));
	th = mtod(m, struct tcphdr *);
	*th = *header;
	th->th_off = sizeof(*th) / 4;
	th->th_sum = in_cksum(th, m->m_len, in_pseudo(laddr, faddr, IPPROTO_TCP + m->m_len));
	/* As FreeBSD, which fills the header of IP in before: the probe's arguments point at it. */
	ip = (struct ip *)(m->m_data - sizeof(*ip));
	*ip = (struct ip){ .ip_hl = sizeof(*ip) / 4, .ip_v = IPVERSION, .ip_len = htons(m->m_len + sizeof(*ip)), .ip_ttl = IPDEFTTL,
		.ip_p = IPPROTO_TCP, .ip_src = laddr, .ip_dst = faddr };
	CPU_STATS_ADD(mib, tcpHCOutSegs, 1);
	if (n > 0) {
		CPU_STATS_ADD(mib, tcpOutDataSegs, 1);
		CPU_STATS_ADD(mib, tcpOutDataBytes, n);
	} else if (header->th_flags & TH_RST)
		CPU_STATS_ADD(mib, tcpOutRsts, 1);
	else if (header->th_flags & (TH_SYN | TH_FIN))
		CPU_STATS_ADD(mib, tcpOutControl, 1);
	else
		CPU_STATS_ADD(mib, tcpOutAck, 1);
	if (tp != NULL && tp->t_state == TCPS_SYN_SENT)
		SDT_PROBE5(tcp, , , connect__request, m, tp, (uint8_t *)ip, tp, th);
	SDT_PROBE5(tcp, , , send, m, tp, (uint8_t *)ip, tp, th);
	return (ip_output(m, laddr, faddr, IPPROTO_TCP, tp != NULL ? tp->t_inpcb : NULL));
}

/* A segment for no connection: the other side is told to forget it. */
static __noinline void
tcp_respond(const struct ip *ip, const struct tcphdr *th, unsigned length)
{
	struct tcphdr reset = { .th_sport = th->th_dport, .th_dport = th->th_sport, .th_flags = TH_RST | TH_ACK };

	if (th->th_flags & TH_ACK)
		reset.th_seq = th->th_ack;
	reset.th_ack = htonl(ntohl(th->th_seq) + length + (th->th_flags & TH_SYN ? 1 : 0));
	if (th->th_flags & TH_SYN)
		SDT_PROBE5(tcp, , , accept__refused, NULL, NULL, (const uint8_t *)ip, NULL, th);
	tcp_send_segment(NULL, ip->ip_dst, ip->ip_src, &reset, 0, 0);
}

/* Sends what there is to send: data that the other side has room for, flags of the state, an acknowledgement that is due. */
__noinline int
tcp_output(struct tcpcb *tp)
{
	struct socket *so = tp_socket(tp);
	struct inpcb *inp = tp->t_inpcb;
	int error = 0;
	bool more;

	do {
		unsigned offset = tp->snd_nxt - tp->snd_una, unsent, room, n;
		uint8_t flags = tcp_outflags[tp->t_state];
		struct tcphdr th = { .th_sport = inp->inp_lport, .th_dport = inp->inp_fport };

		if (flags & TH_SYN)
			offset = unsent = 0;
		else
			unsent = so->so_snd.sb_ccc > offset ? so->so_snd.sb_ccc - offset : 0;
		room = tp->snd_wnd > offset ? tp->snd_wnd - offset : 0;
		n = MIN(MIN(unsent, room), tp->t_maxseg);
		more = n < unsent && n < room && n > 0;
		if (flags & TH_SYN && tp->snd_nxt != tp->iss)
			flags &= ~TH_SYN; /* once */
		if (flags & TH_FIN && (n < unsent || tp->t_flags & TF_SENTFIN))
			flags &= ~TH_FIN; /* after the data, and once */
		if (n == 0 && !(flags & (TH_SYN | TH_FIN | TH_RST)) && !(tp->t_flags & TF_ACKNOW))
			break;
		if (n > 0 && n == unsent)
			flags |= TH_PUSH;
		tp->rcv_wnd = sbspace(&so->so_rcv);
		tp->rcv_adv = tp->rcv_nxt + tp->rcv_wnd;
		th.th_seq = htonl(tp->snd_nxt);
		th.th_ack = flags & TH_ACK ? htonl(tp->rcv_nxt) : 0;
		th.th_flags = flags;
		th.th_win = htons(MIN(tp->rcv_wnd, 65535u));
		tp->snd_nxt += n + (flags & TH_SYN ? 1 : 0) + (flags & TH_FIN ? 1 : 0);
		tp->snd_max = tp->snd_nxt;
		if (flags & TH_FIN)
			tp->t_flags |= TF_SENTFIN;
		tp->t_flags &= ~TF_ACKNOW;
		error = tcp_send_segment(tp, inp->inp_laddr, inp->inp_faddr, &th, offset, n);
	} while (more && error == 0);
	return (error);
}

/* A peer requests a connection. */
static void
tcp_listen_input(struct tcpcb *listener, const struct ip *ip, const struct tcphdr *th)
{
	struct socket *so;
	struct inpcb *inp;
	struct tcpcb *tp;

	if (!(th->th_flags & TH_SYN) || th->th_flags & (TH_ACK | TH_RST))
		return;
	if ((so = sonewconn(tp_socket(listener))) == NULL) {
		CPU_STATS_ADD(mib, tcpListenDrop, 1);
		tcp_respond(ip, th, 0);
		return;
	}
	inp = so->so_pcb;
	inp->inp_laddr = ip->ip_dst;
	inp->inp_lport = th->th_dport;
	inp->inp_faddr = ip->ip_src;
	inp->inp_fport = th->th_sport;
	tp = inp->inp_ppcb;
	tp->irs = ntohl(th->th_seq);
	tp->rcv_nxt = tp->irs + 1;
	tp->snd_wnd = ntohs(th->th_win);
	CPU_STATS_ADD(mib, tcpPassiveOpens, 1);
	tcp_state_change(tp, TCPS_SYN_RECEIVED);
	tcp_output(tp);
}

/* The answer to our request. */
static void
tcp_syn_sent_input(struct tcpcb *tp, const struct mbuf *m, const struct tcphdr *th)
{
	struct socket *so = tp_socket(tp);

	if (!(th->th_flags & TH_ACK) || ntohl(th->th_ack) != tp->snd_nxt)
		return;
	if (th->th_flags & TH_RST) {
		SDT_PROBE5(tcp, , , connect__refused, m, tp, (uint8_t *)m->m_data, tp, th);
		CPU_STATS_ADD(mib, tcpAttemptFails, 1);
		so->so_error = ECONNREFUSED;
		tcp_close(tp);
		return;
	}
	if (!(th->th_flags & TH_SYN))
		return;
	tp->irs = ntohl(th->th_seq);
	tp->rcv_nxt = tp->irs + 1;
	tp->snd_una = ntohl(th->th_ack);
	tp->snd_wnd = ntohs(th->th_win);
	tcp_state_change(tp, TCPS_ESTABLISHED);
	SDT_PROBE5(tcp, , , connect__established, m, tp, (uint8_t *)m->m_data, tp, th);
	soisconnected(so);
	tp->t_flags |= TF_ACKNOW;
	tcp_output(tp);
}

/* What was sent has arrived; false: the connection is over with it. */
static bool
tcp_ack_input(struct tcpcb *tp, const struct mbuf *m, const struct tcphdr *th)
{
	struct socket *so = tp_socket(tp);
	uint32_t acked = ntohl(th->th_ack) - tp->snd_una;
	bool fin_acked;

	tp->snd_wnd = ntohs(th->th_win);
	if (acked == 0 || acked > tp->snd_max - tp->snd_una)
		return (true);
	CPU_STATS_ADD(mib, tcpInAckSegs, 1);
	CPU_STATS_ADD(mib, tcpInAckBytes, acked);
	if (tp->t_state == TCPS_SYN_RECEIVED) {
		tcp_state_change(tp, TCPS_ESTABLISHED);
		SDT_PROBE5(tcp, , , accept__established, m, tp, (uint8_t *)m->m_data, tp, th);
		tp->snd_una++;
		acked--;
		soisconnected(so);
	}
	tp->snd_una += acked;
	fin_acked = acked > so->so_snd.sb_ccc;
	sbdrop(&so->so_snd, MIN(acked, so->so_snd.sb_ccc));
	sowwakeup(so);
	if (!fin_acked)
		return (true);
	if (tp->t_state == TCPS_FIN_WAIT_1)
		tcp_state_change(tp, TCPS_FIN_WAIT_2);
	else if (tp->t_state == TCPS_CLOSING) {
		tcp_state_change(tp, TCPS_TIME_WAIT);
		tcp_close(tp);
		return (false);
	} else if (tp->t_state == TCPS_LAST_ACK) {
		tcp_close(tp);
		return (false);
	}
	return (true);
}

/* The other side has sent all. */
static void
tcp_fin_input(struct tcpcb *tp)
{
	tp->rcv_nxt++;
	tp->t_flags |= TF_ACKNOW;
	socantrcvmore(tp_socket(tp));
	switch (tp->t_state) {
	case TCPS_SYN_RECEIVED:
	case TCPS_ESTABLISHED:
		tcp_state_change(tp, TCPS_CLOSE_WAIT);
		break;
	case TCPS_FIN_WAIT_1:
		tcp_state_change(tp, TCPS_CLOSING);
		break;
	case TCPS_FIN_WAIT_2:
		tcp_state_change(tp, TCPS_TIME_WAIT);
		break;
	}
}

static __noinline void
tcp_do_segment(struct tcpcb *tp, struct mbuf *m, const struct ip *ip, const struct tcphdr *th, unsigned length)
{
	struct socket *so = tp_socket(tp);
	unsigned full = length;

	if (th->th_flags & TH_RST) {
		if (tp->t_state == TCPS_SYN_RECEIVED)
			CPU_STATS_ADD(mib, tcpAttemptFails, 1);
		else
			CPU_STATS_ADD(mib, tcpEstabResets, 1);
		so->so_error = ECONNRESET;
		tcp_close(tp);
		return;
	}
	if (th->th_flags & TH_ACK && !tcp_ack_input(tp, m, th))
		return;
	if (ntohl(th->th_seq) == tp->rcv_nxt && length > 0) {
		if (so->so_state & SS_NOFDREF) { /* no process will read it */
			CPU_STATS_ADD(mib, tcpInClosed, 1);
			tcp_respond(ip, th, length);
			tcp_close(tp);
			return;
		}
		length = MIN(length, sbspace(&so->so_rcv));
		sbappend(&so->so_rcv, m->m_data + sizeof(*ip) + sizeof(*th), length);
		CPU_STATS_ADD(mib, tcpInDataInorderSegs, 1);
		CPU_STATS_ADD(mib, tcpInDataInorderBytes, length);
		tp->rcv_nxt += length;
		tp->t_flags |= TF_ACKNOW;
		sorwakeup(so);
	}
	if (th->th_flags & TH_FIN && ntohl(th->th_seq) + full == tp->rcv_nxt)
		tcp_fin_input(tp);
	tcp_output(tp);
	if (tp->t_state == TCPS_TIME_WAIT)
		tcp_close(tp);
}

__noinline void
tcp_input(struct mbuf *m)
{
	struct ip ip = *mtod(m, struct ip *);
	struct tcphdr *th = (struct tcphdr *)(m->m_data + sizeof(ip));
	int length = m->m_len - sizeof(ip);
	struct inpcb *inp;
	struct tcpcb *tp;

	if (length < (int)sizeof(*th) || in_cksum(th, length, in_pseudo(ip.ip_src, ip.ip_dst, IPPROTO_TCP + length)) != 0) {
		CPU_STATS_ADD(mib, tcpInErrs, 1);
		m_freem(m);
		return;
	}
	inp = in_pcblookup(&tcb, ip.ip_src, th->th_sport, ip.ip_dst, th->th_dport);
	tp = inp != NULL ? inp->inp_ppcb : NULL;
	length -= sizeof(*th);
	CPU_STATS_ADD(mib, tcpHCInSegs, 1);
	SDT_PROBE5(tcp, , , receive, m, tp, (uint8_t *)m->m_data, tp, th);
	if (tp == NULL || tp->t_state == TCPS_CLOSED) {
		if (!(th->th_flags & TH_RST))
			tcp_respond(&ip, th, length);
	} else if (tp->t_state == TCPS_LISTEN)
		tcp_listen_input(tp, &ip, th);
	else if (tp->t_state == TCPS_SYN_SENT)
		tcp_syn_sent_input(tp, m, th);
	else
		tcp_do_segment(tp, m, &ip, th, length);
	m_freem(m);
}

/* ---- what sockets ask ---- */

static int
tcp_usr_attach(struct socket *so)
{
	int error = in_pcballoc(so, &tcb);

	if (error == 0)
		tcp_newtcpcb(so->so_pcb);
	return (error);
}

static int
tcp_usr_bind(struct socket *so, struct sockaddr_in *nam)
{
	return (so->so_pcb == NULL ? EINVAL : in_pcbbind(so->so_pcb, nam));
}

static int
tcp_usr_listen(struct socket *so)
{
	struct inpcb *inp = so->so_pcb;
	int error = 0;

	if (inp == NULL || inp->inp_ppcb->t_state > TCPS_LISTEN)
		return (EINVAL);
	if (inp->inp_lport == 0)
		error = in_pcbbind(inp, NULL);
	if (error == 0 && inp->inp_ppcb->t_state != TCPS_LISTEN)
		tcp_state_change(inp->inp_ppcb, TCPS_LISTEN);
	return (error);
}

static int
tcp_usr_connect(struct socket *so, struct sockaddr_in *nam)
{
	struct inpcb *inp = so->so_pcb;
	int error;

	if (inp == NULL || inp->inp_ppcb->t_state != TCPS_CLOSED)
		return (EINVAL);
	if ((error = in_pcbconnect(inp, nam)) != 0)
		return (error);
	soisconnecting(so);
	CPU_STATS_ADD(mib, tcpActiveOpens, 1);
	inp->inp_ppcb->t_flags |= TF_ACTIVE;
	tcp_state_change(inp->inp_ppcb, TCPS_SYN_SENT);
	return (tcp_output(inp->inp_ppcb));
}

static int
tcp_usr_send(struct socket *so, struct mbuf *m __unused, struct sockaddr_in *nam __unused)
{
	return (so->so_pcb != NULL ? tcp_output(so->so_pcb->inp_ppcb) : ECONNRESET);
}

/* There is room again: worth telling once it is half the buffer, or the other side waits for any. */
static void
tcp_usr_rcvd(struct socket *so)
{
	struct tcpcb *tp = so->so_pcb != NULL ? so->so_pcb->inp_ppcb : NULL;

	if (tp == NULL || tp->t_state < TCPS_ESTABLISHED)
		return;
	if (tp->rcv_nxt + sbspace(&so->so_rcv) - tp->rcv_adv >= so->so_rcv.sb_hiwat / 2 || tp->rcv_adv == tp->rcv_nxt) {
		tp->t_flags |= TF_ACKNOW;
		tcp_output(tp);
	}
}

static int
tcp_usr_shutdown(struct socket *so)
{
	struct tcpcb *tp = so->so_pcb != NULL ? so->so_pcb->inp_ppcb : NULL;

	socantsendmore(so);
	if (tp == NULL)
		return (0);
	if (tp->t_state == TCPS_ESTABLISHED || tp->t_state == TCPS_SYN_RECEIVED)
		tcp_state_change(tp, TCPS_FIN_WAIT_1);
	else if (tp->t_state == TCPS_CLOSE_WAIT)
		tcp_state_change(tp, TCPS_LAST_ACK);
	else
		return (0);
	return (tcp_output(tp));
}

static void
tcp_usr_close(struct socket *so)
{
	struct tcpcb *tp = so->so_pcb != NULL ? so->so_pcb->inp_ppcb : NULL;

	if (tp == NULL)
		sofree(so);
	else if (tp->t_state < TCPS_ESTABLISHED && tp->t_state != TCPS_SYN_RECEIVED)
		tcp_close(tp);
	else
		tcp_usr_shutdown(so); /* the rest happens as the other side answers */
}

const struct protosw tcp_protosw = {
	.pr_type = SOCK_STREAM,
	.pr_protocol = IPPROTO_TCP,
	.pr_attach = tcp_usr_attach,
	.pr_bind = tcp_usr_bind,
	.pr_listen = tcp_usr_listen,
	.pr_connect = tcp_usr_connect,
	.pr_send = tcp_usr_send,
	.pr_rcvd = tcp_usr_rcvd,
	.pr_shutdown = tcp_usr_shutdown,
	.pr_close = tcp_usr_close,
};

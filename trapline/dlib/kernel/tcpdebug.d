/*
 * Names of the actions of tcp and its users (FreeBSD cddl/lib/libdtrace/tcp.d). No request is called SEND_EOF and no
 * direction "drop", since FreeBSD's tables compare twice with one number, and FLUSH is written FLUSE there.
 */

#pragma D depends_on library tcp.d

inline int TA_INPUT = 0;
inline int TA_OUTPUT = 1;
inline int TA_USER = 2;
inline int TA_RESPOND = 3;
inline int TA_DROP = 4;

inline int PRU_ATTACH = 0;
inline int PRU_DETACH = 1;
inline int PRU_BIND = 2;
inline int PRU_LISTEN = 3;
inline int PRU_CONNECT = 4;
inline int PRU_ACCEPT = 5;
inline int PRU_DISCONNECT = 6;
inline int PRU_SHUTDOWN = 7;
inline int PRU_RCVD = 8;
inline int PRU_SEND = 9;
inline int PRU_ABORT = 10;
inline int PRU_CONTROL = 11;
inline int PRU_SENSE = 12;
inline int PRU_RCVOOB = 13;
inline int PRU_SENDOOB = 14;
inline int PRU_SOCKADDR = 15;
inline int PRU_PEERADDR = 16;
inline int PRU_CONNECT2 = 17;
inline int PRU_FASTTIMO = 18;
inline int PRU_SLOWTIMO = 19;
inline int PRU_PROTORCV = 20;
inline int PRU_PROTOSEND = 21;
inline int PRU_SEND_EOF = 22;
inline int PRU_SOSETLABEL = 23;
inline int PRU_CLOSE = 24;
inline int PRU_FLUSH = 25;

inline string tcpdebug_dir_string[uint8_t direction] =
    direction == TA_INPUT ? "input" :
    direction == TA_OUTPUT ? "output" :
    direction == TA_USER ? "user" :
    direction == TA_RESPOND ? "respond" : "unknown";

inline string tcpflag_string[uint8_t flags] =
    flags & TH_FIN ? "FIN" :
    flags & TH_SYN ? "SYN" :
    flags & TH_RST ? "RST" :
    flags & TH_PUSH ? "PUSH" :
    flags & TH_ACK ? "ACK" :
    flags & TH_URG ? "URG" :
    flags & TH_ECE ? "ECE" :
    flags & TH_CWR ? "CWR" :
    "unknown";

inline string prureq_string[uint8_t req] =
    req == PRU_ATTACH ? "ATTACH" :
    req == PRU_DETACH ? "DETACH" :
    req == PRU_BIND ? "BIND" :
    req == PRU_LISTEN ? "LISTEN" :
    req == PRU_CONNECT ? "CONNECT" :
    req == PRU_ACCEPT ? "ACCEPT" :
    req == PRU_DISCONNECT ? "DISCONNECT" :
    req == PRU_SHUTDOWN ? "SHUTDOWN" :
    req == PRU_RCVD ? "RCVD" :
    req == PRU_SEND ? "SEND" :
    req == PRU_ABORT ? "ABORT" :
    req == PRU_CONTROL ? "CONTROL" :
    req == PRU_SENSE ? "SENSE" :
    req == PRU_RCVOOB ? "RCVOOB" :
    req == PRU_SENDOOB ? "SENDOOB" :
    req == PRU_SOCKADDR ? "SOCKADDR" :
    req == PRU_PEERADDR ? "PEERADDR" :
    req == PRU_CONNECT2 ? "CONNECT2" :
    req == PRU_FASTTIMO ? "FASTTIMO" :
    req == PRU_SLOWTIMO ? "SLOWTIMO" :
    req == PRU_PROTORCV ? "PROTORCV" :
    req == PRU_PROTOSEND ? "PROTOSEND" :
    req == PRU_SOSETLABEL ? "SOSETLABEL" :
    req == PRU_CLOSE ? "CLOSE" :
    req == PRU_FLUSH ? "FLUSE" :
    "unknown";

/*
 * Names of what a transfer is and of kinds of devices, for b_cmd, bio_flags and dev_type
 * (FreeBSD cddl/lib/libdtrace/io.d). BIO_READ and BIO_WRITE are in io.d, which needs them.
 */

#pragma D depends_on library io.d

inline int BIO_DELETE = 0x03;
inline int BIO_GETATTR = 0x04;
inline int BIO_FLUSH = 0x05;
inline int BIO_CMD0 = 0x06;
inline int BIO_CMD1 = 0x07;
inline int BIO_CMD2 = 0x08;
inline int BIO_ZONE = 0x09;

/* Flags of a transfer. */
inline int BIO_ERROR = 0x01;
inline int BIO_DONE = 0x02;
inline int BIO_ONQUEUE = 0x04;
inline int BIO_ORDERED = 0x08;
inline int BIO_UNMAPPED = 0x10;
inline int BIO_TRANSIENT_MAPPING = 0x20;
inline int BIO_VLIST = 0x40;

/* A device is of a type, and has an interface. */
inline int DEVSTAT_TYPE_DIRECT = 0x000;
inline int DEVSTAT_TYPE_SEQUENTIAL = 0x001;
inline int DEVSTAT_TYPE_PRINTER = 0x002;
inline int DEVSTAT_TYPE_PROCESSOR = 0x003;
inline int DEVSTAT_TYPE_WORM = 0x004;
inline int DEVSTAT_TYPE_CDROM = 0x005;
inline int DEVSTAT_TYPE_SCANNER = 0x006;
inline int DEVSTAT_TYPE_OPTICAL = 0x007;
inline int DEVSTAT_TYPE_CHANGER = 0x008;
inline int DEVSTAT_TYPE_COMM = 0x009;
inline int DEVSTAT_TYPE_ASC0 = 0x00a;
inline int DEVSTAT_TYPE_ASC1 = 0x00b;
inline int DEVSTAT_TYPE_STORARRAY = 0x00c;
inline int DEVSTAT_TYPE_ENCLOSURE = 0x00d;
inline int DEVSTAT_TYPE_FLOPPY = 0x00e;
inline int DEVSTAT_TYPE_MASK = 0x00f;
inline int DEVSTAT_TYPE_IF_SCSI = 0x010;
inline int DEVSTAT_TYPE_IF_IDE = 0x020;
inline int DEVSTAT_TYPE_IF_OTHER = 0x030;
inline int DEVSTAT_TYPE_IF_MASK = 0x0f0;
inline int DEVSTAT_TYPE_PASS = 0x100;

inline string device_type_string[int type] =
    type == DEVSTAT_TYPE_DIRECT ? "DIRECT" :
    type == DEVSTAT_TYPE_SEQUENTIAL ? "SEQUENTIAL" :
    type == DEVSTAT_TYPE_PRINTER ? "PRINTER" :
    type == DEVSTAT_TYPE_PROCESSOR ? "PROCESSOR" :
    type == DEVSTAT_TYPE_WORM ? "WORM" :
    type == DEVSTAT_TYPE_CDROM ? "CDROM" :
    type == DEVSTAT_TYPE_SCANNER ? "SCANNER" :
    type == DEVSTAT_TYPE_OPTICAL ? "OPTICAL" :
    type == DEVSTAT_TYPE_CHANGER ? "CHANGER" :
    type == DEVSTAT_TYPE_COMM ? "COMM" :
    type == DEVSTAT_TYPE_ASC0 ? "ASC0" :
    type == DEVSTAT_TYPE_ASC1 ? "ASC1" :
    type == DEVSTAT_TYPE_STORARRAY ? "STORARRAY" :
    type == DEVSTAT_TYPE_ENCLOSURE ? "ENCLOSURE" :
    type == DEVSTAT_TYPE_FLOPPY ? "FLOPPY" :
    strjoin("UNKNOWN(", strjoin(lltostr(type), ")"));
inline string device_type[int type] = device_type_string[type & DEVSTAT_TYPE_MASK];

inline string device_if_string[int type] =
    type == 0 ? "ACCESS" :
    type == DEVSTAT_TYPE_IF_SCSI ? "SCSI" :
    type == DEVSTAT_TYPE_IF_IDE ? "IDE" :
    type == DEVSTAT_TYPE_IF_OTHER ? "OTHER" :
    strjoin("UNKNOWN(", strjoin(lltostr(type), ")"));
inline string device_if[int type] = device_if_string[type & DEVSTAT_TYPE_IF_MASK];

inline string bio_cmd_string[int cmd] =
    cmd == BIO_READ ? "READ" :
    cmd == BIO_WRITE ? "WRITE" :
    cmd == BIO_DELETE ? "DELETE" :
    cmd == BIO_GETATTR ? "GETATTR" :
    cmd == BIO_FLUSH ? "FLUSH" :
    cmd == BIO_CMD0 ? "CMD0" :
    cmd == BIO_CMD1 ? "CMD1" :
    cmd == BIO_CMD2 ? "CMD2" :
    cmd == BIO_ZONE ? "ZONE" :
    strjoin("UNKNOWN(", strjoin(lltostr(cmd), ")"));

inline string bio_flag_string[int flag] =
    flag == BIO_ERROR ? "ERROR" :
    flag == BIO_DONE ? "DONE" :
    flag == BIO_ONQUEUE ? "ONQUEUE" :
    flag == BIO_ORDERED ? "ORDERED" :
    flag == BIO_UNMAPPED ? "UNMAPPED" :
    flag == BIO_TRANSIENT_MAPPING ? "TRANSIENT_MAPPING" :
    flag == BIO_VLIST ? "VLIST" :
    "";

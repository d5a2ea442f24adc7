/* What an ioctl's command says of its argument (FreeBSD sys/sys/ioccom.h). */
#ifndef SYS_IOCCOM_H
#define SYS_IOCCOM_H

#define IOC_VOID 0x20000000u
#define IOC_OUT 0x40000000u /* copied out */
#define IOC_IN 0x80000000u  /* copied in */
#define IOCPARM_LEN(com) ((com) >> 16 & 0x1fff)
#define IOC_COMMAND(inout, group, number, length) ((inout) | (uint32_t)(length) << 16 | (group) << 8 | (number))
#define IOC_RW(group, number, type) IOC_COMMAND(IOC_IN | IOC_OUT, group, number, sizeof(type))
#define IOC_R(group, number, type) IOC_COMMAND(IOC_OUT, group, number, sizeof(type))
#define IOC_W(group, number, type) IOC_COMMAND(IOC_IN, group, number, sizeof(type))

#endif

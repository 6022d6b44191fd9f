/* DOSTP for programs of C: datagrams between the nodes of one LAN, without IP.
 *
 * Link with -ldostp_shim, before any other library with sockets. A UDP socket that is attached speaks DOSTP
 * with the nodes of its interface's network and UDP with everybody else; bind, connect, sendto, recvfrom,
 * sendmsg, recvmsg, poll, select and epoll go on as before, on the same descriptor.
 *
 * A program that is not to be changed needs none of this: LD_PRELOAD=libdostp_shim.so DOSTP_NET=10.0.0.0/16.
 */
#ifndef STAUNCH_DOSTP_H
#define STAUNCH_DOSTP_H

#ifdef __cplusplus
extern "C" {
#endif

/* The socket family of the kernel module, unless its parameter says otherwise:
 * /sys/module/dostp/parameters/family. It needs no library. */
#define DOSTP_FAMILY 19

/* The EtherType of frames, and the UDP port of those that travel in UDP. */
#define DOSTP_ETHER_TYPE 0x88B5
#define DOSTP_UDP_PORT 5288

/* The longest message in bytes. */
#define DOSTP_MESSAGE_BYTES_MAX 262144

/* Lets a UDP socket speak DOSTP with the network of this interface; the socket gets a port if it has none.
 * Returns 0, or -1 with errno: EINVAL (no UDP socket, or no such words), ENODEV (no such interface),
 * EALREADY, ENETUNREACH (no backend opens; standard error has said why). */
int dostp_attach(int fd, const char *interface);

/* How a socket speaks DOSTP: "ring", "xdp-generic", "xdp-native", "given" or "udp"; NULL if it does not. */
const char *dostp_backend(int fd);

#ifdef __cplusplus
}
#endif

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Plain sockets as a transport. Workers make these system calls directly; loans come here. */
#include "server/net/net_internal.h"

#include <sys/socket.h>
#include <unistd.h>

static ssize_t plain_receive(struct socket_conn *sock, const struct iovec *pieces, unsigned count, bool *more)
{
	size_t wanted = 0;
	ssize_t got = readv(sock->fd, pieces, (int)count);

	for (unsigned i = 0; i < count; i++)
		wanted += pieces[i].iov_len;
	*more = got > 0 && (size_t)got == wanted;
	return got;
}

static ssize_t plain_send(struct socket_conn *sock, const struct iovec *pieces, unsigned count)
{
	struct msghdr message = { .msg_iov = (struct iovec *)(uintptr_t)pieces, .msg_iovlen = count };

	return sendmsg(sock->fd, &message, MSG_NOSIGNAL);
}

static void plain_close(struct socket_conn *sock)
{
	close(sock->fd);
}

const struct transport transport_plain = {
	.receive = plain_receive,
	.send = plain_send,
	.close = plain_close,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams: options as a stream's (stream.h), then length (2) and bytes of each. Frames that are whole requests are
 * answered as a connection's bytes would be, in datagrams that are numbered and complete; of the others none but the
 * first part of several is answered. The datagrams go through the loopback interface.
 */
#include <endian.h>
#include <netinet/in.h>
#include <poll.h>

#include "tests/fuzz/stream.h"

#define HEADER_BYTES 8u
#define PAYLOAD_BYTES 1392u
#define FRAMES 16u
#define ANSWER_MOST (48u << 10) /* what the receiving socket holds for sure */
#define WAIT_MS 20000

static const char in_parts[] = "SERVER_ERROR multi-packet request not supported\r\n";

struct frame {
	const uint8_t *bytes;
	size_t length;
	struct stream_answer expected;
	bool whole; /* a request */
};

struct datagrams {
	struct stream stream; /* for its options */
	struct frame frames[FRAMES];
	unsigned count;
};

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static void parse(struct datagrams *out)
{
	struct taking from = { out->stream.bytes, out->stream.bytes + out->stream.length };

	out->count = 0;
	while (out->count < FRAMES && left_of(&from) > 2) {
		size_t length = take_number(&from, 2);
		struct frame *frame = &out->frames[out->count++];

		*frame =
			(struct frame){ .bytes = from.at, .length = length < left_of(&from) ? length : left_of(&from) };
		frame->whole = frame->length > HEADER_BYTES && get16(frame->bytes + 4) == 1;
		from.at += frame->length;
	}
}

/* ---- what a connection answers --------------------------------------------------------------- */

static void expect_all(struct datagrams *datagrams)
{
	struct service service;
	bool lost = false; /* an object that a later frame may ask for (innocent.h) */

	fuzz_service_open(&service, &datagrams->stream.options);
	for (unsigned i = 0; i < datagrams->count; i++) {
		struct frame *frame = &datagrams->frames[i];
		struct client client;

		if (frame->whole) {
			client_open(&client, &service, NULL);
			client_send(&client, frame->bytes + HEADER_BYTES, frame->length - HEADER_BYTES);
			client_end(&client);
			frame->expected = (struct stream_answer){ client.answer, client.answer_length,
								  lost ? 0 : client.certain };
			lost |= client.certain != SIZE_MAX;
		} else if (frame->length > HEADER_BYTES && get16(frame->bytes + 4) > 1 &&
			   get16(frame->bytes + 2) == 0) {
			frame->expected = (struct stream_answer){ fuzz_copy(in_parts, strlen(in_parts)),
								  strlen(in_parts), SIZE_MAX };
		}
	}
	fuzz_service_close(&service);
}

/* ---- what the datagrams answer --------------------------------------------------------------- */

static int bound(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htobe32(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), room = 1 << 20, on = 1;

	require(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
	require(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)) == 0);
	require(setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on)) == 0);
	return fd;
}

/* The daemon's socket, and one that is connected with it. */
static void make_sockets(int *server, int *client)
{
	static int fds[2] = { -1, -1 };
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	if (fds[0] < 0) {
		fds[0] = bound();
		fds[1] = bound();
		require(getsockname(fds[0], (struct sockaddr *)&address, &length) == 0);
		require(connect(fds[1], (struct sockaddr *)&address, sizeof(address)) == 0);
	}
	*server = fds[0];
	*client = fds[1];
}

static void wait_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	require(poll(&poll_fd, 1, WAIT_MS) == 1);
}

static void listen_on(struct service *service, struct udp_socket *udp, int fd)
{
	struct sockaddr_in address;
	socklen_t length = sizeof(address);

	require(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
	*udp = (struct udp_socket){ .net = &service->net,
				    .worker = &service->worker,
				    .fd = fd,
				    .family = AF_INET,
				    .port = be16toh(address.sin_port),
				    .leads = true,
				    .address = "udp:127.0.0.1" };
	TAILQ_INIT(&udp->waiting);
	require(event_assign(&udp->readable, service->worker.base, fd, EV_READ | EV_PERSIST, udp_readable, udp) == 0);
	require(event_assign(&udp->writable, service->worker.base, fd, EV_WRITE, udp_writable, udp) == 0);
	require(event_add(&udp->readable, NULL) == 0);
}

/* The daemon takes a datagram, and has done with it. */
static void give(struct service *service, struct udp_socket *udp, int client, const struct frame *frame)
{
	require(send(client, frame->bytes, frame->length, 0) == (ssize_t)frame->length);
	wait_readable(udp->fd);
	do {
		service_turn(service);
		service_wait(service);
	} while (!LIST_EMPTY(&service->worker.conns) || !TAILQ_EMPTY(&udp->waiting));
}

/* One datagram of an answer: the number-th of *total. */
static void receive_part(int client, const struct frame *frame, unsigned number, unsigned *total,
			 struct stream_answer *out)
{
	uint8_t bytes[65536];
	ssize_t got;

	wait_readable(client);
	got = recv(client, bytes, sizeof(bytes), 0);
	require(got > (ssize_t)HEADER_BYTES && got <= (ssize_t)(HEADER_BYTES + PAYLOAD_BYTES));
	require(memcmp(bytes, frame->bytes, 2) == 0 && get16(bytes + 2) == number && get16(bytes + 6) == 0);
	require(number == 0 || *total == get16(bytes + 4));
	*total = get16(bytes + 4);
	require(number + 1 == *total || got == (ssize_t)(HEADER_BYTES + PAYLOAD_BYTES));
	memcpy(out->bytes + out->length, bytes + HEADER_BYTES, (size_t)got - HEADER_BYTES);
	out->length += (size_t)got - HEADER_BYTES;
}

static void receive_answer(int client, struct frame *frame)
{
	struct stream_answer answer = { malloc(2 * ANSWER_MOST), 0, SIZE_MAX };
	unsigned total = 1;

	if (!answer.bytes)
		abort();
	for (unsigned number = 0; number < total && frame->expected.length > 0; number++) {
		require(answer.length < ANSWER_MOST + PAYLOAD_BYTES);
		receive_part(client, frame, number, &total, &answer);
	}
	if (frame->expected.length > 0) {
		stream_leave_out_stats(&answer);
		stream_leave_out_stats(&frame->expected);
		stream_require_same(&frame->expected, &answer);
	}
	require(recv(client, answer.bytes, 1, 0) < 0);
	free(answer.bytes);
}

static void ask_all(struct datagrams *datagrams)
{
	struct service service;
	struct udp_socket udp;
	int server, client;

	make_sockets(&server, &client);
	fuzz_service_open(&service, &datagrams->stream.options);
	listen_on(&service, &udp, server);
	for (unsigned i = 0; i < datagrams->count; i++) {
		give(&service, &udp, client, &datagrams->frames[i]);
		receive_answer(client, &datagrams->frames[i]);
	}
	event_del(&udp.readable);
	event_del(&udp.writable);
	fuzz_service_close(&service);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct datagrams datagrams;
	bool small = true;

	if (!stream_parse(&datagrams.stream, data, size))
		return 0;
	parse(&datagrams);
	expect_all(&datagrams);
	for (unsigned i = 0; i < datagrams.count; i++)
		small = small && datagrams.frames[i].expected.length < ANSWER_MOST;
	if (small)
		ask_all(&datagrams);
	for (unsigned i = 0; i < datagrams.count; i++)
		free(datagrams.frames[i].expected.bytes);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/stream.h"

#define TURNS_MASK 15u
#define SHOWN_BYTES 100u /* around what differs */

static const uint8_t mark[2] = { 0xfe, 0xed };

#define EVENT_BYTES 4u /* with the mark */

bool stream_parse(struct stream *stream, const uint8_t *data, size_t size)
{
	struct taking from = { data, data + size };
	unsigned options;

	if (size <= STREAM_HEAD_BYTES)
		return false;
	options = (unsigned)take_number(&from, 1);
	stream->options = (struct service_options){
		.no_ids = options & STREAM_NO_IDS,
		.no_evict = options & STREAM_NO_EVICT,
		.login = options & STREAM_LOGIN,
		.flash = options & STREAM_FLASH,
		.large_items = options & STREAM_LARGE_ITEMS,
		.old = options & STREAM_OLD,
		.turns = (unsigned)take_number(&from, 1) & TURNS_MASK,
	};
	stream->seed = (uint32_t)take_number(&from, 4);
	(void)take_number(&from, 2);
	stream->bytes = from.at;
	stream->length = left_of(&from);
	stream->options.detail = memmem(stream->bytes, stream->length, "detail", 6) != NULL;
	return true;
}

/* The next event at or after `at`; the end of the stream if there is none. */
static const uint8_t *find_event(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *found = memmem(at, (size_t)(end - at), mark, sizeof(mark));

	return found && end - found >= EVENT_BYTES ? found : end;
}

static void keep(struct stream_answer *answer, const struct client *client)
{
	answer->bytes = realloc(answer->bytes, answer->length + client->answer_length + 1);
	if (!answer->bytes)
		abort();
	if (client->answer_length > 0)
		memcpy(answer->bytes + answer->length, client->answer, client->answer_length);
	if (answer->certain == SIZE_MAX && client->certain != SIZE_MAX)
		answer->certain = answer->length + client->certain;
	answer->length += client->answer_length;
}

static void end_client(struct stream_answer *answer, struct client *client)
{
	client_end(client);
	keep(answer, client);
	client_free(client);
}

static void happen(struct service *service, struct client *client, struct stream_answer *answer, const uint8_t *event)
{
	switch (event[0]) {
	case 'm':
		service_move(service);
		break;
	case 'd':
		service_damage(service, event[1]);
		break;
	case 't':
		service_pass(service, event[1]);
		break;
	case 'r':
		end_client(answer, client);
		client_open(client, service, client->cuts);
		break;
	default:
		break;
	}
}

struct stream_answer stream_run(const struct stream *stream, bool cuts)
{
	const uint8_t *at = stream->bytes, *end = at + stream->length, *event;
	struct stream_answer answer = { NULL, 0, SIZE_MAX };
	struct service service;
	struct client client;
	struct rng rng;

	rng_init(&rng, stream->seed);
	fuzz_service_open(&service, &stream->options);
	client_open(&client, &service, cuts ? &rng : NULL);
	for (;;) {
		event = find_event(at, end);
		client_send(&client, at, (size_t)(event - at));
		if (event == end)
			break;
		happen(&service, &client, &answer, event + sizeof(mark));
		at = event + EVENT_BYTES;
	}
	end_client(&answer, &client);
	fuzz_service_close(&service);
	return answer;
}

size_t stream_certain(const struct stream_answer *answer, const char *end, const char *to, size_t certain)
{
	if (answer->certain == SIZE_MAX)
		return SIZE_MAX;
	return (size_t)(end - answer->bytes) <= answer->certain ? (size_t)(to - answer->bytes) : certain;
}

void stream_leave_out_stats(struct stream_answer *answer)
{
	char *at = answer->bytes, *end = at + answer->length, *to = at;
	size_t certain = stream_certain(answer, at, at, 0);

	while (at < end) {
		char *newline = memchr(at, '\n', (size_t)(end - at)), *next = newline ? newline + 1 : end;

		if (next - at < 5 || memcmp(at, "STAT ", 5) != 0) {
			memmove(to, at, (size_t)(next - at));
			to += next - at;
		}
		certain = stream_certain(answer, next, to, certain);
		at = next;
	}
	answer->length = (size_t)(to - answer->bytes);
	answer->certain = certain;
}

static void show(const char *which, const struct stream_answer *answer, size_t from)
{
	size_t left = answer->length - from;

	fprintf(stderr, "--- %s, %zu bytes, from %zu:\n%.*s\n---\n", which, answer->length, from,
		(int)(left < 2 * SHOWN_BYTES ? left : 2 * SHOWN_BYTES), answer->bytes + from);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

void stream_require_same(const struct stream_answer *whole, const struct stream_answer *pieces)
{
	size_t certain = least(whole->certain, pieces->certain);
	size_t of_whole = least(whole->length, certain), of_pieces = least(pieces->length, certain);
	size_t length = least(of_whole, of_pieces), at = 0, from;

	if (of_whole == of_pieces && memcmp(whole->bytes, pieces->bytes, length) == 0)
		return;
	while (at < length && whole->bytes[at] == pieces->bytes[at])
		at++;
	from = at > SHOWN_BYTES ? at - SHOWN_BYTES : 0;
	fprintf(stderr, "answers differ at byte %zu\n", at);
	show("at once", whole, from);
	show("in pieces", pieces, from);
	abort();
}

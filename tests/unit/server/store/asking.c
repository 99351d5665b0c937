/* SPDX-License-Identifier: BSD-3-Clause */
#include "asking.h"

#define FLAGS 77
#define LIFE 100

bool start_asking(struct harness *h, unsigned worker, struct flight *f, const char *key, struct asked asked)
{
	struct store_request *request = &f->request;

	flight_prepare(h, worker, f, asked.op, key);
	request->has_options = true;
	request->options = asked.options;
	request->cas = asked.cas;
	request->delta = asked.delta;
	request->expiry = store_expiry(h->store, asked.exptime);
	if (asked.value) {
		request->item = store_item_create(h->worker[worker], f->key, request->key_length, asked.flags,
						  request->expiry, (uint32_t)strlen(asked.value), &request->result);
		assert_non_null(request->item);
		memcpy(store_item_value(request->item), asked.value, strlen(asked.value));
	}
	return flight_execute(h, f);
}

struct reply ask(struct harness *h, const char *key, struct asked asked)
{
	struct flight f;

	start_asking(h, 0, &f, key, asked);
	return finish(h, &f);
}

void assert_marks_at(struct harness *h, const char *key, bool stale, bool win_sent, const char *file, int line)
{
	struct reply reply = ASK(h, key, .uncounted = true);

	_assert_int_equal(reply.result, STORE_HIT, file, line);
	_assert_int_equal(reply.found.stale, stale, file, line);
	_assert_int_equal(reply.found.win_sent, win_sent, file, line);
	_assert_int_equal(reply.found.won, false, file, line);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void (*acting)(struct harness *h, const char *key, uint64_t cas);
static uint64_t acting_cas;
static bool acted;

static void act_on_planned(struct harness *h)
{
	assert_int_equal(where(h, "key"), PLANNED);
	acted = true;
	acting(h, "key", acting_cas);
}

static void in_place(struct harness *h, enum where place, enum phase phase)
{
	harness_open(h);
	acting_cas =
		run_full(h, .op = STORE_SET, .key = "key", .value = "10", .length = 2, .flags = FLAGS, .exptime = LIFE)
			.cas;
	acted = false;
	if (place == PLANNED) {
		while_planned(h, "key", phase, act_on_planned);
		assert_true(acted);
	} else {
		if (place != DRAM)
			move(h, "key");
		if (place == CLEAN_COPY)
			make_clean_copy(h, "key");
		acting(h, "key", acting_cas);
	}
	run(h, STORE_DELETE, "key");
	assert_int_equal(where(h, "key"), NOWHERE);
	harness_close(h);
}

void in_every_place(struct harness *h, void (*act)(struct harness *h, const char *key, uint64_t cas))
{
	acting = act;
	in_place(h, DRAM, PHASE_NONE);
	in_place(h, FLASH, PHASE_NONE);
	in_place(h, PLANNED, PHASE_GATHERED);
	in_place(h, PLANNED, PHASE_WRITTEN);
	if (HAVE_FAULTS)
		in_place(h, CLEAN_COPY, PHASE_NONE);
}

void in_every_absence(struct harness *h, void (*act)(struct harness *h, const char *key))
{
	for (int why = 0; why < 6; why++) {
		harness_open(h);
		if (why > 0)
			run_full(h, .op = STORE_SET, .key = "key", .value = "old", .length = 3, .flags = FLAGS,
				 .exptime = LIFE);
		if (why % 2)
			move(h, "key");
		if (why == 1 || why == 2)
			run(h, STORE_DELETE, "key");
		else if (why == 3 || why == 4)
			seconds_pass(h, LIFE);
		else if (why == 5)
			store_flush_all(h->store, 0);
		act(h, "key");
		harness_close(h);
	}
}

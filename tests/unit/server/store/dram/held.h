/* SPDX-License-Identifier: BSD-3-Clause */
/* A stripe that a test holds, and links in its table, for test_table.c and test_table_size.c. */
#ifndef FS_TESTS_HELD_H
#define FS_TESTS_HELD_H

#include "server/store/dram/line.h"
#include "tests/unit/server/store/harness.h"

#define MANY 3000u

/* A stripe held by the test, which takes items of any hash here: no request comes to it. */
struct held {
	struct store_context *context;
	struct store *store;
	struct stripe *stripe;
};

static inline struct held hold_first(struct harness *h)
{
	h->config.flash_path = NULL;
	harness_open(h);
	struct held held = { .context = &h->worker[0]->context, .store = h->store, .stripe = &h->store->stripes[0] };
	lock_acquire(&held.stripe->lock);
	return held;
}

static inline uint64_t hash_of(const struct held *held, const char *key)
{
	return store_hash(held->store, key, strlen(key));
}

static inline struct item *find(const struct held *held, const char *key)
{
	return stripe_find(held->stripe, hash_of(held, key), key, strlen(key));
}

static inline struct item *make(const struct held *held, const char *key)
{
	struct item *item = item_new(held->context, key, strlen(key), 0, 0, 0);

	assert_non_null(item);
	return item;
}

static inline struct item *link(const struct held *held, const char *key)
{
	struct item *item = make(held, key);

	assert_true(stripe_link(held->store, held->stripe, hash_of(held, key), item));
	return item;
}

static inline void take_out(const struct held *held, const char *key)
{
	struct item *item = find(held, key);

	assert_non_null(item);
	stripe_unlink(held->store, held->stripe, hash_of(held, key), item);
	assert_false(item->state & ITEM_LINKED);
	item_release(held->context, item);
}

static inline void name(unsigned n, char key[24])
{
	snprintf(key, 24, "object:%u", n);
}

static inline void link_many(const struct held *held, unsigned count)
{
	char key[24];

	for (unsigned n = 0; n < count; n++) {
		name(n, key);
		link(held, key);
	}
}

static inline void let_go(struct held *held, unsigned from, unsigned to)
{
	char key[24];

	for (unsigned n = from; n < to; n++) {
		name(n, key);
		take_out(held, key);
	}
	lock_release(&held->stripe->lock);
}

/* Each link lies in one of its two lines, and each line counts its guests elsewhere. Returns the guests. */
static inline unsigned check_lines(const struct held *held)
{
	uint32_t shape = held->stripe->shape, lines = shape_lines(shape), found = 0, guests = 0;
	unsigned *away = mem_must_zalloc(lines * sizeof(*away));

	for (uint32_t line = 0; line < lines; line++) {
		const struct link_line *at = &held->stripe->lines[line];

		for (unsigned link = 0; link < LINE_LINKS; link++) {
			const struct item *item = line_item(at, link);

			if (!item)
				continue;
			uint32_t bits = table_bits(store_hash(held->store, item_key(item), item->key_length));
			uint32_t own = shape_own_line(shape, bits);
			bool guest = line_is_guest(at, link);

			assert_int_equal(at->tag[link], (uint8_t)(bits >> shape_shift(shape)));
			assert_int_equal(line, guest ? line_other(own, at->tag[link], lines) : own);
			assert_true(own < lines);
			away[own] += guest;
			guests += guest;
			found++;
		}
	}
	for (uint32_t line = 0; line < lines; line++)
		assert_int_equal(line_away(&held->stripe->lines[line]), away[line]);
	assert_int_equal(found, held->stripe->count);
	mem_free(away);
	return guests;
}

#endif

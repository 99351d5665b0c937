/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/tracegen/tally.h"

#include "base/alloc.h"

#define SEEN 1u
#define READ 2u
#define SMALL_BYTES 1024u
#define LEAST_OBJECTS 50

void tally_init(struct tally *tally, const struct plan *plan)
{
	*tally = (struct tally){ .plan = plan };
	lru_init(&tally->lru, plan->keys, plan->allocation);
	tally->last_size = mem_must_zalloc(plan->keys * sizeof(*tally->last_size));
	tally->state = mem_must_zalloc(plan->keys);
}

void tally_fini(struct tally *tally)
{
	lru_fini(&tally->lru);
	mem_free(tally->last_size);
	mem_free(tally->state);
}

static void count_known_get(struct tally *tally, const struct event *event)
{
	uint32_t bytes = event->key_size + (uint32_t)event->value_size;
	uint32_t *last = &tally->last_size[event->key];
	bool hit = lru_access(&tally->lru, event->key, bytes);

	if (event->time_s >= tally->plan->span_s / 7) {
		tally->lru_gets++;
		tally->lru_hits += hit;
		tally->lru_firsts += *last == 0;
	}
	if (*last == 0) {
		tally->writes++;
		tally->unread++;
		tally->object_bytes += bytes;
		tally->small += bytes < SMALL_BYTES;
	} else {
		if (!(tally->state[event->key] & READ))
			tally->unread--;
		tally->state[event->key] |= READ;
		*(*last == bytes ? &tally->reads : &tally->updates) += 1;
	}
	*last = bytes;
}

void tally_event(struct tally *tally, const struct event *event)
{
	tally->requests++;
	tally->ops[event->op]++;
	tally->keys += !(tally->state[event->key] & SEEN);
	tally->state[event->key] |= SEEN;
	if (event->value_size > 0) {
		tally->value_rows++;
		tally->value_bytes += event->value_size;
	}
	if (event->op == EVENT_SET)
		tally->set_small += event->key_size + (uint32_t)event->value_size < SMALL_BYTES;
	if (event->op == EVENT_GET && event->value_size > 0)
		count_known_get(tally, event);
}

double tally_hit_percent(const struct tally *tally)
{
	return tally->lru_gets ? 100.0 * (double)tally->lru_hits / (double)tally->lru_gets : -1;
}

bool tally_hit_counts(const struct plan *plan)
{
	double object = plan->app->mean_value + (plan->app->key_low + plan->app->key_high) / 2.0;

	return plan->app->hit > 0 && plan->core > 1 && (double)plan->allocation >= LEAST_OBJECTS * object;
}

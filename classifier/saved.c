/* SPDX-License-Identifier: BSD-3-Clause */
/* What the classifier knows of keys and of its budget, over a clean stop. Models have files of their own. */
#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "classifier/classifier_internal.h"

struct clf_saved {
	uint64_t bytes; /* of this struct */
	uint64_t seed; /* of the keys of the counts */
	uint64_t counts_bytes, flash_bytes;
	uint64_t asks_at_eviction;
	double size_exponent;
	uint64_t residence_ms;
	struct offers_saved offers;
};

_Static_assert(CLF_COUNTS_UNIT == COUNTS_ENTRIES * sizeof(uint16_t), "a piece is a bucket");

static void fill_saved(struct clf *clf, struct clf_saved *out)
{
	memset(out, 0, sizeof(*out));
	out->bytes = sizeof(*out);
	out->seed = clf->sampler.config.seed;
	out->counts_bytes = clf_counts_bytes(clf);
	out->flash_bytes = clf->config.flash_bytes;
	out->asks_at_eviction = clf_asks_at_eviction(clf);
	out->size_exponent = clf->config.size_exponent;
	out->residence_ms = atomic_load(&clf->residence_ms);
	offers_save(&clf->offers, &out->offers);
}

void clf_save(struct clf *clf, struct parts_writer *writer)
{
	struct clf_saved saved;

	fill_saved(clf, &saved);
	parts_put(writer, PARTS_CLASSIFIER, 0, &saved, sizeof(saved));
}

static bool is_same(const struct clf_saved *saved, const struct clf_saved *now)
{
	return saved->bytes == now->bytes && saved->counts_bytes == now->counts_bytes &&
	       saved->flash_bytes == now->flash_bytes && saved->asks_at_eviction == now->asks_at_eviction &&
	       fabs(saved->size_exponent - now->size_exponent) < 1e-9 && offers_are_sound(&saved->offers);
}

int clf_load(struct clf *clf, struct parts_reader *reader, bool *same)
{
	struct clf_saved saved, now;
	int result = parts_take(reader, PARTS_CLASSIFIER, 0, &saved, sizeof(saved));

	*same = false;
	if (result != FS_OK)
		return result;
	fill_saved(clf, &now);
	*same = is_same(&saved, &now);
	if (!*same)
		return FS_OK;
	clf->sampler.config.seed = saved.seed;
	atomic_store(&clf->residence_ms, saved.residence_ms);
	offers_load(&clf->offers, &saved.offers);
	return FS_OK;
}

uint64_t clf_counts_bytes(const struct clf *clf)
{
	return clf->counts.buckets * CLF_COUNTS_UNIT;
}

void clf_counts_copy(struct clf *clf, uint64_t from, void *out, uint64_t length)
{
	must(from % CLF_COUNTS_UNIT == 0 && length % CLF_COUNTS_UNIT == 0);
	counts_copy(&clf->counts, from / CLF_COUNTS_UNIT, length / CLF_COUNTS_UNIT, out);
}

void clf_counts_merge(struct clf *clf, uint64_t from, const void *bytes, uint64_t length)
{
	must(from % CLF_COUNTS_UNIT == 0 && length % CLF_COUNTS_UNIT == 0);
	counts_merge(&clf->counts, from / CLF_COUNTS_UNIT, length / CLF_COUNTS_UNIT, bytes);
}

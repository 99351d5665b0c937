/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects of a segment whose place is needed return to DRAM or go. */
#include "segments/layout.h"
#include "tests/unit/server/store/harness.h"

/* Until the next segment to be written is the oldest live one. */
static uint32_t fill_flash(struct harness *h)
{
	enum seg_state state;
	uint32_t segment;

	for (;;) {
		assert_int_equal(seg_next(h->store->segments, &segment, &state), FS_OK);
		if (state == SEG_LIVE)
			return segment;
		assert_true(write_one(h));
	}
}

/* Puts the key into the oldest segment, and returns that. */
static uint32_t put_in_oldest(struct harness *h, const char *key, const char *value)
{
	set_on_flash(h, key, value);
	uint32_t segment = segment_of(h, key);
	for (int i = 0; i < 100 && fill_flash(h) != segment; i++)
		assert_true(write_one(h));
	assert_int_equal(fill_flash(h), segment);
	assert_int_equal(where(h, key), FLASH);
	return segment;
}

static struct clf_features features_of(struct harness *h, const char *key)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));
	struct item *item = stripe_find(store_stripe(h->store, hash), hash, key, strlen(key));

	assert_non_null(item);
	return item_features(item);
}

static unsigned clock_of(struct harness *h, const char *key)
{
	uint64_t hash = store_hash(h->store, key, strlen(key));

	return item_clock(stripe_find(store_stripe(h->store, hash), hash, key, strlen(key)));
}

/* ---- what goes ------------------------------------------------------------------------------- */

static void a_failed_walk_sweeps_the_index_and_no_slot_names_the_segment(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	uint64_t swept = ctr_sum(CTR_segments_swept), sequence = seg_sequence(h->store->segments, segment);
	fault_arm(FAULT_reclaim_walk_fails, FAULT_ALWAYS, 0);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(ctr_sum(CTR_segments_swept), swept + 1);
	assert_int_equal(fidx_segment_slots(h->store->index, segment), 0);
	assert_true(seg_sequence(h->store->segments, segment) != sequence);
	assert_true(fidx_verify(h->store->index));
	struct reply reply = get(h, "key");
	assert_true(reply.result == STORE_MISS || strcmp(reply.value, "value") == 0);
	assert_true(write_one(h)); /* the number is used again */
}

static void a_corrupt_segment_is_walked_as_far_as_it_goes_and_swept(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	fault_arm(FAULT_device_read_eio, FAULT_ALWAYS, 0);
	assert_true(reclaim_segment(h->store, segment));
	fault_disarm_all();
	assert_int_equal(fidx_segment_slots(h->store->index, segment), 0);
	assert_true(fidx_verify(h->store->index));
	assert_missing(h, "key");
}

static void an_object_unread_on_flash_does_not_come_back(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), NOWHERE);
	assert_missing(h, "key");
}

/* Its horizon is a quarter of that time. */
static void it_tells_the_classifier_how_long_objects_stay_on_flash(void **state)
{
	struct harness *h = *state;
	struct clf_status status;

	h->config.label_mode = CLF_LABEL_FULL;
	h->config.flashiness_horizon_ms = 0;
	harness_open(h);
	set_on_flash(h, "key", "value");
	clk_scripted_advance(&h->clk, 400000000);
	assert_true(reclaim_segment(h->store, segment_of(h, "key")));
	clf_get_status(h->store->classifier, &status);
	assert_int_equal(status.horizon_ms, 100001);
	set_on_flash(h, "key", "value");
	clk_scripted_advance(&h->clk, 40000000);
	assert_true(reclaim_segment(h->store, segment_of(h, "key")));
	clf_get_status(h->store->classifier, &status);
	assert_int_equal(status.horizon_ms, 10001);
}

static void a_ghost_does_not_come_back(void **state)
{
	struct harness *h = *state;
	struct fidx_status status;
	uint64_t visited;

	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	fidx_get_status(h->store->index, &status);
	for (int i = 0; i < 8; i++)
		fidx_hand(h->store->index, status.slots, UINT64_MAX / 2, &visited);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), NOWHERE);
}

static void what_was_overwritten_does_not_come_back(void **state)
{
	struct harness *h = *state;

	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	get(h, "key");
	set(h, "key", "new");
	assert_true(reclaim_segment(h->store, segment));
	assert_value(h, "key", "new");
	run(h, STORE_DELETE, "key");
	assert_missing(h, "key");
}

/* Its record is still there, and a slot of the key too, but that leads to another place. */
static void only_the_record_that_a_slot_leads_to_is_live(void **state)
{
	struct harness *h = *state;

	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	set(h, "key", "newer");
	run(h, STORE_DELETE, "key");
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), NOWHERE);
	segment = put_in_oldest(h, "key", "value");
	set(h, "key", "newer");
	get(h, "key");
	while (where(h, "key") == DRAM) /* each write reclaims the oldest first */
		assert_true(write_one(h));
	assert_value(h, "key", "newer");
}

static void what_expired_or_was_flushed_does_not_come_back(void **state)
{
	struct harness *h = *state;

	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	store_flush_all(h->store, 0);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), NOWHERE);
	run_full(h, .op = STORE_SET, .key = "key", .value = "value", .length = 5, .exptime = 10);
	move(h, "key");
	segment = segment_of(h, "key");
	while (fill_flash(h) != segment)
		assert_true(write_one(h));
	seconds_pass(h, 10);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), NOWHERE);
}

/* ---- what changes while it is looked at ------------------------------------------------------ */

struct before {
	struct harness *h;
	const char *key;
	uint32_t segment;
	uint64_t live; /* records that lie before the key's */
};

static bool count_live_before(void *context, uint64_t offset, bool is_extent, const struct seg_record *record)
{
	struct before *before = context;
	struct store *store = before->h->store;
	struct fidx_match match;
	struct fidx_key key;

	if (record->key_length == strlen(before->key) && memcmp(record->key, before->key, record->key_length) == 0)
		return false;
	fidx_key_of(store->index, store_hash(store, record->key, record->key_length), &key);
	before->live += record_is_live(store, before->segment, seg_sequence(store->segments, before->segment), &key,
				       offset, is_extent, &match);
	return true;
}

/* Reclaims the key's segment, and calls what between the first look at the key's slot and the decision on its record. */
static void reclaim_and_between(struct harness *h, const char *key, void (*what)(void *context))
{
	struct before before = { .h = h, .key = key, .segment = segment_of(h, key) };
	uint64_t visited;

	assert_int_equal(seg_walk(h->store->segments, before.segment, count_live_before, &before, &visited), FS_OK);
	fault_call(FAULT_store_reclaim_visit, what, h);
	fault_arm(FAULT_store_reclaim_visit, FAULT_AFTER, before.live);
	assert_true(reclaim_segment(h->store, before.segment));
	assert_int_equal(fault_fired(FAULT_store_reclaim_visit), 1);
	assert_true(fidx_verify(h->store->index));
}

static void delete_key(void *context)
{
	assert_int_equal(run(context, STORE_DELETE, "key").result, STORE_DELETED);
}

static void replace_and_evict_key(void *context)
{
	struct harness *h = context;
	uint64_t visited;

	set(h, "key", "new");
	for (int i = 0; i < 6; i++)
		evict_dram(&h->worker[1]->context, UINT64_MAX / 2, 1 << 20, EVICT_AT_ZERO, false, &visited);
	assert_int_equal(where(h, "key"), NOWHERE);
}

static void replace_key(void *context)
{
	set(context, "key", "new");
}

/* A key in the oldest segment, of which all that is live comes back into DRAM. */
static void open_with_oldest(struct harness *h)
{
	if (!HAVE_FAULTS)
		skip();
	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	put_in_oldest(h, "key", "value");
}

static void what_is_deleted_between_the_two_looks_at_its_slot_does_not_come_back(void **state)
{
	struct harness *h = *state;

	open_with_oldest(h);
	reclaim_and_between(h, "key", delete_key);
	assert_missing(h, "key");
	assert_int_equal(where(h, "key"), NOWHERE);
}

static void what_is_replaced_and_evicted_between_the_two_looks_does_not_come_back(void **state)
{
	struct harness *h = *state;

	open_with_oldest(h);
	reclaim_and_between(h, "key", replace_and_evict_key);
	assert_missing(h, "key");
}

static void what_is_replaced_between_the_two_looks_stays_the_new_one(void **state)
{
	struct harness *h = *state;

	open_with_oldest(h);
	reclaim_and_between(h, "key", replace_key);
	assert_value(h, "key", "new");
	move(h, "key");
	assert_value(h, "key", "new");
}

static void a_large_object_deleted_between_the_two_looks_does_not_come_back(void **state)
{
	struct harness *h = *state;
	static char value[KIB(10)];

	if (!HAVE_FAULTS)
		skip();
	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "key", .value = value, .length = sizeof(value));
	move(h, "key");
	while (fill_flash(h) != segment_of(h, "key"))
		assert_true(write_one(h));
	reclaim_and_between(h, "key", delete_key);
	assert_missing(h, "key");
	assert_int_equal(where(h, "key"), NOWHERE);
}

/* ---- what comes back ------------------------------------------------------------------------- */

static void what_was_read_on_flash_comes_back_with_clock_and_features(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	run_full(h, .op = STORE_SET, .key = "key", .value = "value", .length = 5, .flags = 42, .exptime = 1000);
	seconds_pass(h, 3);
	get(h, "key");
	seconds_pass(h, 3);
	uint64_t cas = get(h, "key").cas;
	struct clf_features before = features_of(h, "key");
	move(h, "key");
	uint32_t segment = segment_of(h, "key");
	while (fill_flash(h) != segment)
		assert_true(write_one(h));
	assert_true(get(h, "key").from_flash);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), DRAM);
	assert_int_equal(slots_of(h, "key"), 0);
	assert_int_equal(clock_of(h, "key"), 3);
	struct clf_features after = features_of(h, "key");
	assert_int_equal(after.reads.count, before.reads.count);
	assert_int_not_equal(after.reads.mean_gap, 0);
	struct reply reply = get(h, "key");
	assert_string_equal(reply.value, "value");
	assert_int_equal(reply.flags, 42);
	assert_int_equal(reply.cas, cas);
	seconds_pass(h, 993);
	assert_value(h, "key", "value");
	seconds_pass(h, 1);
	assert_missing(h, "key");
}

static void every_live_object_comes_back_where_the_option_says_so(void **state)
{
	struct harness *h = *state;

	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), DRAM);
	assert_value(h, "key", "value");
}

static void a_large_object_read_on_flash_comes_back(void **state)
{
	struct harness *h = *state;
	static char value[KIB(10)];

	harness_open(h);
	memset(value, 'L', sizeof(value));
	run_full(h, .op = STORE_SET, .key = "large", .value = value, .length = sizeof(value));
	move(h, "large");
	uint32_t segment = segment_of(h, "large");
	while (fill_flash(h) != segment)
		assert_true(write_one(h));
	assert_true(get(h, "large").from_flash);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "large"), DRAM);
	assert_int_equal(get(h, "large").value_hash, hash64(value, sizeof(value), 0));
}

static void a_promoted_copy_survives_reclaim_as_an_original(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	make_clean_copy(h, "key");
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), DRAM);
	assert_int_equal(slots_of(h, "key"), 0);
	assert_value(h, "key", "value");
	move(h, "key"); /* and is written again */
	assert_value(h, "key", "value");
}

static void a_promoted_copy_survives_a_reclaim_that_failed(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	make_clean_copy(h, "key");
	fault_arm(FAULT_device_read_eio, FAULT_ALWAYS, 0);
	assert_true(reclaim_segment(h->store, segment));
	fault_disarm_all();
	assert_value(h, "key", "value");
	assert_int_equal(run_with(h, STORE_APPEND, "key", "+").result, STORE_STORED);
	for (int i = 0; i < 100 && !write_one(h); i++)
		seconds_pass(h, 10); /* the device was taken offline, and is tried again */
	move(h, "key");
	assert_value(h, "key", "value+");
}

/* ---- what is read ----------------------------------------------------------------------------- */

#define LONG_BYTES 900u /* a record that is checked only if it is wanted */

static uint64_t place_on_device(struct harness *h, const char *key)
{
	struct fidx_match match;

	assert_true(slot_of(h, key, &match));
	return LAYOUT_SUPER_BYTES + match.segment * h->store->segment_bytes +
	       seg_position(h->store->segments, match.segment, match.place, match.function);
}

static uint32_t open_with_long(struct harness *h, char value[LONG_BYTES + 1])
{
	memset(value, 'v', LONG_BYTES);
	value[LONG_BYTES] = 0;
	harness_use_ram(h);
	harness_open(h);
	return put_in_oldest(h, "key", value);
}

/* Its value doesn't matter any more, and its slot goes without a sweep. */
static void a_broken_value_that_nobody_wants_is_no_error(void **state)
{
	struct harness *h = *state;
	char value[LONG_BYTES + 1];
	uint32_t segment = open_with_long(h, value);
	uint64_t swept = ctr_sum(CTR_segments_swept);

	h->ram->bytes[place_on_device(h, "key") + 600] ^= 1;
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(ctr_sum(CTR_segments_swept), swept);
	assert_int_equal(where(h, "key"), NOWHERE);
	assert_true(fidx_verify(h->store->index));
}

static void a_broken_value_does_not_come_back(void **state)
{
	struct harness *h = *state;
	char value[LONG_BYTES + 1];
	uint32_t segment = open_with_long(h, value);
	uint64_t swept = ctr_sum(CTR_segments_swept);

	assert_true(get(h, "key").from_flash);
	keep_no_reads(h);
	h->ram->bytes[place_on_device(h, "key") + 600] ^= 1;
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(ctr_sum(CTR_segments_swept), swept + 1);
	assert_int_equal(where(h, "key"), NOWHERE);
	assert_missing(h, "key");
	assert_true(fidx_verify(h->store->index));
}

/* Its record isn't wanted, but says whose it is: only a record whose check is right may end a copy. */
static void a_copy_stays_one_when_its_record_is_broken(void **state)
{
	struct harness *h = *state;
	char value[LONG_BYTES + 1];
	struct fidx_status status;
	uint64_t visited;
	uint32_t segment;

	if (!HAVE_FAULTS)
		skip();
	segment = open_with_long(h, value);
	make_clean_copy(h, "key");
	fidx_get_status(h->store->index, &status);
	for (int i = 0; i < 8; i++) /* a ghost is not wanted */
		fidx_hand(h->store->index, status.slots, UINT64_MAX / 2, &visited);
	h->ram->bytes[place_on_device(h, "key") + 600] ^= 1;
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), CLEAN_COPY);
	assert_int_equal(slots_of(h, "key"), 0);
	assert_int_equal(run_with(h, STORE_APPEND, "key", "+").result, STORE_STORED);
	assert_int_equal(where(h, "key"), DRAM);
	assert_int_equal(get(h, "key").length, LONG_BYTES + 1);
	assert_true(fidx_verify(h->store->index));
}

#define LONG_KEYS 16u

/* The segment that holds the most of the keys; *one is the first of them, and *others how many more there are. */
static uint32_t fullest(struct harness *h, char keys[LONG_KEYS][16], unsigned *one, unsigned *others)
{
	unsigned count[16] = { 0 }, best = 0;

	for (unsigned n = 0; n < LONG_KEYS; n++)
		if (where(h, keys[n]) == FLASH && ++count[segment_of(h, keys[n])] > count[best])
			best = segment_of(h, keys[n]);
	assert_true(count[best] > 1);
	*others = count[best] - 1;
	for (*one = 0; where(h, keys[*one]) != FLASH || segment_of(h, keys[*one]) != best; ++*one)
		;
	return best;
}

/* Of objects of 50 KB that were not read, little more than the heads is read. */
static void long_values_that_go_are_not_read(void **state)
{
	struct harness *h = *state;
	static char value[50000];
	char keys[LONG_KEYS][16];
	unsigned one, others;
	uint64_t before, read;
	uint32_t segment;

	h->config.segment_bytes = KIB(256);
	h->config.flash_bytes = MIB(2);
	harness_open(h);
	memset(value, 'v', sizeof(value));
	for (unsigned n = 0; n < LONG_KEYS; n++) {
		snprintf(keys[n], sizeof(keys[n]), "key:%u", n);
		run_full(h, .op = STORE_SET, .key = keys[n], .value = value, .length = sizeof(value));
	}
	for (unsigned n = 0; n < 4; n++)
		assert_true(write_one(h));
	segment = fullest(h, keys, &one, &others);
	assert_true(get(h, keys[one]).from_flash);
	while (fill_flash(h) != segment)
		assert_true(write_one(h));
	before = ctr_sum(CTR_flash_reclaim_bytes_read);
	assert_true(reclaim_segment(h->store, segment));
	read = ctr_sum(CTR_flash_reclaim_bytes_read) - before;
	assert_true(read >= sizeof(value));
	assert_true(read <= KIB(256) + 4 * SEG_PAGE - others * (sizeof(value) - 2 * SEG_PAGE));
	assert_int_equal(where(h, keys[one]), DRAM);
}

/* A rule that counts stays is told of those that end on flash, as of those in memory. */
static void a_stay_that_ends_on_flash_counts_for_the_next_one(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	clf_set_admission(h->store->classifier, CLF_ADMIT_SECOND_HIT);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), NOWHERE);
	set(h, "key", "value");
	assert_true(features_of(h, "key").past > 0);
	set(h, "another", "value");
	assert_int_equal(features_of(h, "another").past, 0);
}

/* ---- under a rule that asks at eviction ------------------------------------------------------- */

/* Records of the key and of fillers are about as long; nothing counts for a filler. So this lies between them. */
#define BETWEEN (-5.8)

static void what_is_worth_it_stays_with_its_count_as_its_past(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	uint64_t slots = fidx_segment_slots(h->store->index, segment), dropped = ctr_sum(CTR_flash_objects_dropped);
	uint64_t reinserted = ctr_sum(CTR_flash_objects_reinserted);
	clf_set_admission(h->store->classifier, CLF_ADMIT_FREQ);
	for (unsigned i = 0; i < 4; i++)
		assert_true(get(h, "key").from_flash);
	uint64_t candidates = h->store->candidate_count;
	set_threshold(h, BETWEEN);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), DRAM);
	assert_int_equal(slots_of(h, "key"), 0);
	assert_int_equal(features_of(h, "key").reads.count, 0); /* a stay begins, with what is known of it */
	assert_true(features_of(h, "key").past > 0);
	assert_true(worth_of(h, "key") > BETWEEN);
	assert_true(item_in_dram(h, "key")->state & ITEM_CANDIDATE); /* it is asked about once */
	assert_int_equal(h->store->candidate_count, candidates + 1);
	assert_int_equal(ctr_sum(CTR_flash_objects_reinserted) - reinserted, 1);
	assert_int_equal(ctr_sum(CTR_flash_objects_dropped) - dropped, slots - 1);
	assert_value(h, "key", "value");
}

static void a_hit_on_flash_counts_in_the_next_worth(void **state)
{
	struct harness *h = *state;
	double worth;

	harness_open(h);
	clf_set_admission(h->store->classifier, CLF_ADMIT_FREQ);
	set(h, "key", "value");
	worth = worth_of(h, "key");
	run(h, STORE_DELETE, "key");
	clf_set_admission(h->store->classifier, CLF_ADMIT_ALL);
	set_on_flash(h, "key", "value");
	clf_set_admission(h->store->classifier, CLF_ADMIT_FREQ);
	for (unsigned i = 0; i < 2; i++)
		assert_true(get(h, "key").from_flash);
	set(h, "key", "other");
	assert_true(worth_of(h, "key") > worth + 2); /* of a quarter and two */
}

/* The simple rules keep it: it was read. So does the option that keeps all that is live. */
static void what_is_not_worth_it_goes_although_it_was_read(void **state)
{
	struct harness *h = *state;

	h->config.reinsertion = STORE_REINSERT_LIVE;
	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	clf_set_admission(h->store->classifier, CLF_ADMIT_FREQ);
	assert_true(get(h, "key").from_flash); /* which counts */
	set_threshold(h, 1000);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), NOWHERE);
	assert_missing(h, "key");
}

static void a_ghost_that_is_worth_it_stays(void **state)
{
	struct harness *h = *state;
	struct fidx_status status;
	uint64_t visited;

	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	clf_set_admission(h->store->classifier, CLF_ADMIT_FREQ);
	assert_true(get(h, "key").from_flash);
	fidx_get_status(h->store->index, &status);
	for (int i = 0; i < 8; i++)
		fidx_hand(h->store->index, status.slots, UINT64_MAX / 2, &visited);
	set_threshold(h, -1000);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), DRAM);
}

static void what_nobody_asked_for_goes_whatever_the_budget(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	clf_set_admission(h->store->classifier, CLF_ADMIT_FREQ);
	set_threshold(h, -1000);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(where(h, "key"), NOWHERE);
}

static void what_is_dead_is_not_offered_again(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint32_t segment = put_in_oldest(h, "key", "value");
	store_flush_all(h->store, 0);
	clf_set_admission(h->store->classifier, CLF_ADMIT_FREQ);
	uint64_t scored = ctr_sum(CTR_objects_scored);
	assert_true(reclaim_segment(h->store, segment));
	assert_int_equal(ctr_sum(CTR_objects_scored), scored);
	assert_int_equal(where(h, "key"), NOWHERE);
}

/* ---- order ----------------------------------------------------------------------------------- */

static void segments_are_written_strictly_in_fifo_order(void **state)
{
	struct harness *h = *state;
	uint64_t last = 0;

	harness_open(h);
	for (int i = 0; i < 40; i++) {
		enum seg_state st;
		uint32_t segment;

		assert_int_equal(seg_next(h->store->segments, &segment, &st), FS_OK);
		assert_int_equal(segment, i % 16);
		assert_true(write_one(h));
		assert_true(seg_sequence(h->store->segments, segment) > last);
		last = seg_sequence(h->store->segments, segment);
	}
	assert_true(fidx_verify(h->store->index));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_failed_walk_sweeps_the_index_and_no_slot_names_the_segment),
		TEST(a_corrupt_segment_is_walked_as_far_as_it_goes_and_swept),
		TEST(an_object_unread_on_flash_does_not_come_back),
		TEST(it_tells_the_classifier_how_long_objects_stay_on_flash),
		TEST(a_ghost_does_not_come_back),
		TEST(what_was_overwritten_does_not_come_back),
		TEST(only_the_record_that_a_slot_leads_to_is_live),
		TEST(what_expired_or_was_flushed_does_not_come_back),
		TEST(what_is_deleted_between_the_two_looks_at_its_slot_does_not_come_back),
		TEST(what_is_replaced_and_evicted_between_the_two_looks_does_not_come_back),
		TEST(what_is_replaced_between_the_two_looks_stays_the_new_one),
		TEST(a_large_object_deleted_between_the_two_looks_does_not_come_back),
		TEST(what_was_read_on_flash_comes_back_with_clock_and_features),
		TEST(every_live_object_comes_back_where_the_option_says_so),
		TEST(a_large_object_read_on_flash_comes_back),
		TEST(a_promoted_copy_survives_reclaim_as_an_original),
		TEST(a_promoted_copy_survives_a_reclaim_that_failed),
		TEST(a_broken_value_that_nobody_wants_is_no_error),
		TEST(a_broken_value_does_not_come_back),
		TEST(a_copy_stays_one_when_its_record_is_broken),
		TEST(long_values_that_go_are_not_read),
		TEST(a_stay_that_ends_on_flash_counts_for_the_next_one),
		TEST(what_is_worth_it_stays_with_its_count_as_its_past),
		TEST(a_hit_on_flash_counts_in_the_next_worth),
		TEST(what_is_not_worth_it_goes_although_it_was_read),
		TEST(a_ghost_that_is_worth_it_stays),
		TEST(what_nobody_asked_for_goes_whatever_the_budget),
		TEST(what_is_dead_is_not_offered_again),
		TEST(segments_are_written_strictly_in_fifo_order),
	};

	return cmocka_run_group_tests_name("store: reclaim", tests, NULL, NULL);
}

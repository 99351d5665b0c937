/* SPDX-License-Identifier: BSD-3-Clause */
/* Hits, misses and commands, as memcached counts them. */
#include "server/store/request/request_internal.h"

/* The kinds of results that counters tell apart. */
enum outcome { OUTCOME_HIT, OUTCOME_MISS, OUTCOME_DIFFERS, OUTCOME_OTHER };

static const uint8_t OUTCOME_OF[] = {
	[STORE_HIT] = OUTCOME_HIT,          [STORE_DELETED] = OUTCOME_HIT,      [STORE_TOUCHED] = OUTCOME_HIT,
	[STORE_STORED] = OUTCOME_HIT,       [STORE_MISS] = OUTCOME_MISS,        [STORE_EXISTS] = OUTCOME_DIFFERS,
	[STORE_NOT_STORED] = OUTCOME_OTHER, [STORE_NOT_NUMBER] = OUTCOME_OTHER, [STORE_TOO_LARGE] = OUTCOME_OTHER,
	[STORE_NO_MEMORY] = OUTCOME_OTHER,
};

struct op_counters {
	enum ctr command;
	enum ctr outcome[OUTCOME_OTHER + 1]; /* hit, miss, differs, other */
	enum class_counter class_hit; /* CLASS_COUNTERS: none */
};

static const struct op_counters OP_COUNTERS[] = {
	[STORE_GET] = { CTR_cmd_get, { CTR_get_hits, CTR_get_misses, CTR_COUNT, CTR_COUNT }, CLASS_GET_HITS },
	[STORE_GAT] = { CTR_cmd_touch, { CTR_touch_hits, CTR_touch_misses, CTR_COUNT, CTR_COUNT }, CLASS_TOUCH_HITS },
	[STORE_SET] = { CTR_cmd_set, { CTR_COUNT, CTR_COUNT, CTR_COUNT, CTR_COUNT }, CLASS_COUNTERS },
	[STORE_ADD] = { CTR_cmd_set, { CTR_COUNT, CTR_COUNT, CTR_COUNT, CTR_COUNT }, CLASS_COUNTERS },
	[STORE_REPLACE] = { CTR_cmd_set, { CTR_COUNT, CTR_COUNT, CTR_COUNT, CTR_COUNT }, CLASS_COUNTERS },
	[STORE_APPEND] = { CTR_cmd_set, { CTR_COUNT, CTR_COUNT, CTR_COUNT, CTR_COUNT }, CLASS_COUNTERS },
	[STORE_PREPEND] = { CTR_cmd_set, { CTR_COUNT, CTR_COUNT, CTR_COUNT, CTR_COUNT }, CLASS_COUNTERS },
	[STORE_CAS] = { CTR_cmd_set, { CTR_cas_hits, CTR_cas_misses, CTR_cas_badval, CTR_COUNT }, CLASS_CAS_HITS },
	[STORE_INCR] = { CTR_COUNT, { CTR_incr_hits, CTR_incr_misses, CTR_COUNT, CTR_COUNT }, CLASS_INCR_HITS },
	[STORE_DECR] = { CTR_COUNT, { CTR_decr_hits, CTR_decr_misses, CTR_COUNT, CTR_COUNT }, CLASS_DECR_HITS },
	[STORE_DELETE] = { CTR_COUNT,
			   { CTR_delete_hits, CTR_delete_misses, CTR_delete_misses, CTR_COUNT },
			   CLASS_DELETE_HITS },
	[STORE_TOUCH] = { CTR_cmd_touch, { CTR_touch_hits, CTR_touch_misses, CTR_COUNT, CTR_COUNT }, CLASS_TOUCH_HITS },
};

static inline void count_counter(enum ctr counter)
{
	if (counter != CTR_COUNT)
		ctr_add(counter, 1);
}

/* The bytes of the value's object, in DRAM or as it would be there. */
static inline uint64_t bytes_of_value(const struct store *store, const struct store_request *request)
{
	const struct store_value *value = &request->value;

	if (value->item)
		return (uint64_t)(value->data + value->length - (const char *)value->item);
	return store_item_bytes(store, request->key_length, value->client_flags, value->length);
}

static inline unsigned class_of_value(const struct store *store, const struct store_request *request)
{
	return size_class(bytes_of_value(store, request));
}

static void count_classes(struct store_context *context, const struct store_request *request, enum store_op op,
			  enum outcome outcome)
{
	enum class_counter hit = OP_COUNTERS[op].class_hit;

	if (op > STORE_GAT && request->class_brought)
		class_add(context->classes, request->class_brought, CLASS_SETS, 1);
	if (outcome == OUTCOME_HIT && hit != CLASS_COUNTERS)
		class_add(context->classes,
			  op > STORE_GAT ? request->class_met : class_of_value(context->store, request), hit, 1);
	if (outcome == OUTCOME_DIFFERS && op == STORE_CAS)
		class_add(context->classes, request->class_met, CLASS_CAS_BADVAL, 1);
}

static void count_op(struct store_context *context, const struct store_request *request, enum store_op op)
{
	enum outcome outcome = OUTCOME_OF[request->result];

	count_counter(OP_COUNTERS[op].command);
	count_counter(OP_COUNTERS[op].outcome[outcome]);
	count_classes(context, request, op, outcome);
}

/* A request with options doesn't always count as its command does: see struct store_options. */
static __attribute__((cold, noinline)) void count_with_options(struct store_context *context,
							       const struct store_request *request, bool from_flash)
{
	const struct store_options *options = &request->options;
	bool hit = request->result == STORE_HIT, deleted = request->result == STORE_DELETED;
	enum store_op op = request->op;

	if ((request->op == STORE_GET && options->uncounted) || options->refused)
		return;
	if ((request->op == STORE_INCR || request->op == STORE_DECR) && request->made)
		return;
	if (deleted && options->invalidate)
		return;
	if (request->op == STORE_DELETE && request->result == STORE_EXISTS && options->uncounted)
		return;
	if (request->op == STORE_GET && options->touch && hit)
		op = STORE_GAT;
	else if ((request->op == STORE_SET || request->op == STORE_REPLACE) && options->compare_cas)
		op = STORE_CAS;
	count_op(context, request, op);
	if (request->op == STORE_GET && !options->touch && hit)
		ctr_add(from_flash ? CTR_flash_hits : CTR_dram_hits, 1);
}

static inline void count_get(struct store_context *context, const struct store_request *request, bool from_flash)
{
	struct ctr_block *block = ctr_own();

	ctr_add_to(block, CTR_cmd_get, 1);
	if (request->result != STORE_HIT) {
		ctr_add_to(block, CTR_get_misses, 1);
		return;
	}
	ctr_add_to(block, CTR_get_hits, 1);
	ctr_add_to(block, from_flash ? CTR_flash_hits : CTR_dram_hits, 1);
	class_add(context->classes, class_of_value(context->store, request), CLASS_GET_HITS, 1);
}

void count_result(struct store_context *context, const struct store_request *request, bool from_flash)
{
	/* The most frequent requests come first and don't need the table. */
	if (__builtin_expect(request->has_options, 0)) {
		count_with_options(context, request, from_flash);
	} else if (request->op == STORE_GET) {
		count_get(context, request, from_flash);
	} else if (request->op == STORE_SET) {
		ctr_add(CTR_cmd_set, 1);
		class_add(context->classes, request->class_brought, CLASS_SETS, 1);
	} else {
		count_op(context, request, request->op);
	}
}

/* As in memcached, what has expired has a TTL below zero, without its sign. */
static uint32_t told_ttl(uint32_t expiry, uint32_t now_seconds)
{
	uint32_t left = store_ttl(expiry, now_seconds);

	return expiry > 0 && left == 0 ? UINT32_MAX : left;
}

static void tell_met(const struct store *store, const struct store_request *request, struct store_told *out)
{
	bool hit = request->result == STORE_HIT && !(request->has_options && request->made);

	if (request->op > STORE_GAT) {
		out->met = (enum store_met)request->met;
		out->met_class = request->class_met;
		out->met_bytes = request->met_bytes;
	} else {
		out->met = !hit                        ? STORE_MET_NOTHING
			   : request->value.from_flash ? STORE_MET_ON_FLASH
						       : STORE_MET_IN_DRAM;
		out->met_class = hit ? class_of_value(store, request) : 0;
		out->met_bytes = hit ? request->value.length : 0;
	}
}

void store_tell(const struct store *store, const struct store_request *request, struct store_told *out)
{
	bool stores = request->op >= STORE_SET && request->op <= STORE_CAS;

	*out = (struct store_told){ 0 };
	tell_met(store, request, out);
	if (request->op <= STORE_GAT && request->result == STORE_HIT) {
		out->class = class_of_value(store, request);
		out->value_bytes = request->value.length;
		out->object_bytes = (uint32_t)bytes_of_value(store, request);
	} else if (request->op > STORE_GAT) {
		out->class = stores ? request->class_brought : request->class_met;
	}
	if (stores && out->class != 0)
		out->value_bytes = (uint32_t)request->number;
	if ((stores && out->class != 0) || request->op == STORE_GAT || request->op == STORE_TOUCH)
		out->ttl_seconds = told_ttl(request->expiry, store_now_seconds(store, clk_now_us(store->clock)));
}

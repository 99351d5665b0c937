/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two workers in threads of their own beside the cleaner's and the trainer's. Each key has one
 * writer, which knows exactly what it must find or miss; the other thread reads it and must never
 * see a version older than the last one that was answered before it asked. A third thread walks over all
 * objects meanwhile, and asks for all else that an operator may ask for. Best under TSan.
 */
#include <poll.h>
#include <pthread.h>

#include "base/rng.h"
#include "harness.h"

#define KEYS 4000 /* half of them each writer's */
#define PADDING 1200
#define SEGMENTS 40
#define OPERATIONS_MOST 10000000

/* cmocka's asserts are for the main thread. */
#define check(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
			tell(); \
			abort(); \
		} \
	} while (0)

/* What reads had to do with it. */
static void tell(void)
{
	static const enum ctr counters[] = {
		CTR_flash_read_timeouts, CTR_flash_reads_shed,      CTR_flash_reads_shared,  CTR_flash_reads_cancelled,
		CTR_flash_read_errors,   CTR_flash_checksum_errors, CTR_flash_revalidations, CTR_flash_freezes,
		CTR_index_drops,         CTR_flash_objects_dropped, CTR_segments_swept
	};

	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
		fprintf(stderr, "%s %llu\n", ctr_info(counters[i])->name, (unsigned long long)ctr_sum(counters[i]));
}

struct shared {
	struct harness *h;
	_Atomic uint64_t answered[KEYS]; /* the version that readers must see at least */
	_Atomic uint64_t begun[KEYS]; /* the highest that a writer has asked to store */
	uint64_t operations; /* of each, at least; then on until enough segments are written */
	uint64_t segments;
};

struct client {
	struct shared *shared;
	struct store_worker *worker;
	unsigned number;
	struct rng rng;
	bool present[KEYS];
	struct {
		enum store_op op;
		enum store_result result;
	} last[KEYS]; /* that said that it isn't there */
	uint64_t hits, flash_hits, foreign_hits;
	bool done;
};

struct answer {
	enum store_result result;
	uint64_t version;
	bool from_flash;
};

static void on_done(struct store_request *request)
{
	((struct client *)request->owner)->done = true;
}

static void execute_and_wait(struct client *c, struct store_request *request)
{
	c->done = false;
	request->done = on_done;
	request->owner = c;
	store_worker_turn(c->worker);
	if (store_execute(c->worker, request))
		return;
	while (!c->done) {
		store_worker_flush(c->worker);
		if (!wait_for_store(c->worker))
			check(!"completed in time");
		store_worker_turn(c->worker);
		store_worker_poll(c->worker);
	}
}

/* "key version xxxxx": whose it is and which. */
static uint64_t version_in(const struct store_value *value, unsigned key)
{
	unsigned found;
	unsigned long long version;
	char text[64] = "";

	memcpy(text, value->data, value->length < sizeof(text) - 1 ? value->length : sizeof(text) - 1);
	if (sscanf(text, "%u %llu", &found, &version) != 2 || found != key)
		check(!"a key's own value");
	return version;
}

static struct answer ask(struct client *c, enum store_op op, unsigned key, uint64_t version, uint64_t cas)
{
	struct store_request request = { .op = op, .cas = cas };
	struct answer answer = { 0 };
	char name[24], value[PADDING + 64];
	int length = 0;

	request.key = name;
	request.key_length = (uint8_t)snprintf(name, sizeof(name), "key:%u", key);
	request.hash = store_hash(c->shared->h->store, name, request.key_length);
	if (op == STORE_SET || op == STORE_ADD || op == STORE_REPLACE) {
		memset(value, 'x', sizeof(value));
		length = snprintf(value, 64, "%u %llu ", key, (unsigned long long)version);
		value[length] = 'x';
		length += (int)rng_below(&c->rng, PADDING);
		request.item =
			store_item_create(c->worker, name, request.key_length, 0, 0, (uint32_t)length, &answer.result);
		check(request.item);
		memcpy(store_item_value(request.item), value, (size_t)length);
	}
	execute_and_wait(c, &request);
	answer.result = request.result;
	if (request.value.data) {
		answer.version = version_in(&request.value, key);
		answer.from_flash = request.value.from_flash;
		store_value_release(c->worker, &request.value);
	}
	return answer;
}

static void gone(struct client *c, unsigned key, enum store_op op, enum store_result result)
{
	if (c->present[key]) {
		c->last[key].op = op;
		c->last[key].result = result;
	}
	c->present[key] = false;
}

static void check_present(const struct client *c, unsigned key)
{
	if (!c->present[key])
		fprintf(stderr, "key %u was gone by operation %d, result %d\n", key, (int)c->last[key].op,
			(int)c->last[key].result);
	check(c->present[key]);
}

static void read_own(struct client *c, unsigned key)
{
	enum store_op op = rng_below(&c->rng, 8) ? STORE_GET : STORE_GAT;
	struct answer answer = ask(c, op, key, 0, 0);

	if (answer.result == STORE_MISS) {
		gone(c, key, op, answer.result);
		return;
	}
	check(answer.result == STORE_HIT);
	check_present(c, key);
	check(answer.version == atomic_load(&c->shared->answered[key]));
	c->hits++;
	c->flash_hits += answer.from_flash;
}

static void read_others(struct client *c, unsigned key)
{
	uint64_t least = atomic_load(&c->shared->answered[key]);
	struct answer answer = ask(c, STORE_GET, key, 0, 0);

	if (answer.result != STORE_HIT)
		return;
	check(answer.version >= least && answer.version <= atomic_load(&c->shared->begun[key]));
	c->foreign_hits++;
}

static void write_own(struct client *c, unsigned key)
{
	static const enum store_op ops[] = { STORE_SET, STORE_SET, STORE_SET, STORE_ADD, STORE_REPLACE, STORE_DELETE };
	enum store_op op = ops[rng_below(&c->rng, 6)];
	uint64_t version = atomic_load(&c->shared->answered[key]) + 1;

	atomic_store(&c->shared->begun[key], version);
	struct answer answer = ask(c, op, key, version, 0);
	switch (answer.result) {
	case STORE_STORED:
		if (op == STORE_REPLACE)
			check_present(c, key);
		c->present[key] = true;
		break;
	case STORE_NOT_STORED:
		if (op == STORE_ADD) {
			check_present(c, key);
			return; /* the old version stands */
		}
		check(op == STORE_REPLACE);
		gone(c, key, op, answer.result);
		break;
	case STORE_DELETED:
		check_present(c, key);
		gone(c, key, op, answer.result);
		break;
	default:
		check(answer.result == STORE_MISS);
		gone(c, key, op, answer.result);
	}
	atomic_store(&c->shared->answered[key], version); /* a delete is a version that holds nothing */
}

static bool wanted(const struct client *c, uint64_t i)
{
	if (i < c->shared->operations)
		return true;
	return i < OPERATIONS_MOST && (i % 64 || ctr_sum(CTR_segments_written) < c->shared->segments);
}

static void *client_main(void *argument)
{
	struct client *c = argument;

	for (uint64_t i = 0; wanted(c, i); i++) {
		unsigned key = (unsigned)(rng_below(&c->rng, KEYS) * rng_below(&c->rng, KEYS) / KEYS);
		bool own = key % 2 == c->number;
		uint64_t dice = rng_below(&c->rng, 10);

		if (!own)
			read_others(c, key);
		else if (dice < 5)
			read_own(c, key);
		else
			write_own(c, key);
	}
	store_worker_flush(c->worker);
	return NULL;
}

/* ---- one who looks on ------------------------------------------------------------------------ */

struct visitor {
	struct harness *h;
	_Atomic bool stop;
	uint64_t seen, seen_on_flash, walks;
};

static bool look(void *context, const struct store_seen *object)
{
	struct visitor *visitor = context;
	char name[STORE_KEY_MAX + 1] = "";
	unsigned key;

	memcpy(name, object->key, object->key_length);
	check(sscanf(name, "key:%u", &key) == 1 && key < KEYS);
	check(object->value_length < PADDING + 64 && object->cas != 0 && object->expires == -1);
	check(object->bytes <= store_class_bytes(object->class));
	visitor->seen++;
	visitor->seen_on_flash += object->from_flash;
	return !atomic_load(&visitor->stop);
}

static void ignore_size(void *context, uint32_t bytes, uint64_t objects)
{
	(void)context;
	check(bytes > 0 && objects > 0);
}

/* All that an operator may ask for while the cache is at work. */
static void *visitor_main(void *argument)
{
	struct visitor *visitor = argument;
	struct store *store = visitor->h->store;
	struct store_class_status class;

	for (; !atomic_load(&visitor->stop); visitor->walks++) {
		int result = store_walk(store, true, look, visitor);

		check(result == FS_OK || (HAVE_FAULTS && result == FS_EIO));
		check(store_count_sizes(store, ignore_size, NULL) == FS_OK);
		(void)!store_crawl(store);
		for (unsigned n = 1; n <= store_class_count(); n++)
			store_get_class(store, n, &class);
		if (visitor->walks % 8 == 7)
			store_reset_classes(store);
		check(store_set_memory_limit(store, visitor->h->config.memory_bytes + visitor->walks % 2 * KIB(64)) ==
		      FS_OK);
	}
	return NULL;
}

static void run_clients(struct harness *h)
{
	static struct shared shared;
	static struct client client[WORKERS];
	const char *seed_text = getenv("STORE_SEED"), *operations = getenv("STORE_OPERATIONS");
	uint64_t seed = seed_text ? strtoull(seed_text, NULL, 0) : 20261120;
	uint64_t segments = ctr_sum(CTR_segments_written), compactions = ctr_sum(CTR_memory_compactions);
	struct visitor visitor = { .h = h };
	pthread_t thread[WORKERS], visits;

	memset(&shared, 0, sizeof(shared));
	memset(client, 0, sizeof(client));
	shared.h = h;
	shared.segments = segments + SEGMENTS;
	shared.operations = operations ? strtoull(operations, NULL, 0) : 20000;
	print_message("seed %llu\n", (unsigned long long)seed);
	harness_open(h);
	assert_int_equal(store_start(h->store), FS_OK);
	for (unsigned i = 0; i < WORKERS; i++) {
		client[i].shared = &shared;
		client[i].worker = h->worker[i];
		client[i].number = i;
		rng_init(&client[i].rng, seed + i);
		assert_int_equal(pthread_create(&thread[i], NULL, client_main, &client[i]), 0);
	}
	assert_int_equal(pthread_create(&visits, NULL, visitor_main, &visitor), 0);
	for (unsigned i = 0; i < WORKERS; i++)
		pthread_join(thread[i], NULL);
	atomic_store(&visitor.stop, true);
	pthread_join(visits, NULL);
	store_stop(h->store);
	segments = ctr_sum(CTR_segments_written) - segments;
	print_message("%llu own hits, %llu on flash; %llu of the other's; %llu segments\n",
		      (unsigned long long)(client[0].hits + client[1].hits),
		      (unsigned long long)(client[0].flash_hits + client[1].flash_hits),
		      (unsigned long long)(client[0].foreign_hits + client[1].foreign_hits),
		      (unsigned long long)segments);
	print_message("%llu walks saw %llu objects, %llu of them on flash; objects and tables were moved %llu times\n",
		      (unsigned long long)visitor.walks, (unsigned long long)visitor.seen,
		      (unsigned long long)visitor.seen_on_flash,
		      (unsigned long long)(ctr_sum(CTR_memory_compactions) - compactions));
	assert_true(segments >= SEGMENTS);
	assert_true(visitor.seen_on_flash > 50);
	assert_true(client[0].flash_hits + client[1].flash_hits > 50);
}

static void prepare(struct harness *h)
{
	h->config.clock = clk_boot();
	h->config.memory_bytes = MIB(1);
	h->config.flash_bytes = 5 * KIB(64);
	h->config.flash_object_bytes = 200;
	h->config.placement = SEG_PLACE_SWEEP;
	h->config.read_timeout_ms = 60000;
}

static void no_thread_ever_sees_an_older_version(void **state)
{
	struct harness *h = *state;

	prepare(h);
	run_clients(h);
}

static void no_thread_ever_sees_an_older_version_with_every_collision(void **state)
{
	struct harness *h = *state;

	prepare(h);
	h->config.tag_bits = 2;
	h->config.functions = 2;
	h->config.filter_bits = 2;
	h->config.reinsertion = STORE_REINSERT_LIVE;
	fault_arm(FAULT_cleaner_pause_before_commit, FAULT_EVERY, 2);
	fault_arm(FAULT_index_force_relocation, FAULT_EVERY, 2);
	fault_arm(FAULT_store_promote, FAULT_EVERY, 5);
	fault_arm(FAULT_store_revalidation_fails, FAULT_EVERY, 7);
	fault_arm(FAULT_device_read_again, FAULT_EVERY, 6);
	fault_arm(FAULT_reclaim_walk_fails, FAULT_EVERY, 301);
	fault_arm(FAULT_store_reclaim_visit, FAULT_EVERY, 50);
	run_clients(h);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(no_thread_ever_sees_an_older_version),
		TEST(no_thread_ever_sees_an_older_version_with_every_collision),
	};

	return cmocka_run_group_tests_name("store: threads", tests, NULL, NULL);
}

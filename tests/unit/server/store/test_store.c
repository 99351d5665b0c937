/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening, starting and tuning a store; one that can't be opened says why. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "segments/path.h"
#include "tests/unit/server/store/harness.h"

#define MORE_THAN_THERE_IS (1ull << 60)
#define CHANGES 2000

static void assert_refused(struct harness *h, int code, const char *option, const char *range)
{
	int result = harness_try_open(h);

	if (result == FS_OK)
		harness_close(h);
	assert_int_equal(result, code);
	if (!strstr(h->reason, option) || (range && !strstr(h->reason, range)))
		fail_msg("the reason does not name %s and %s: %s", option, range ? range : "-", h->reason);
}

/* ---- refusals -------------------------------------------------------------------------------- */

static void a_path_that_can_not_be_is_refused_with_its_name(void **state)
{
	struct harness *h = *state;

	h->config.flash_path = "/nowhere/at/all/flash";
	assert_refused(h, FS_ESYS, "flash-path", "/nowhere/at/all/flash");
	assert_non_null(strstr(h->reason, "No such file"));
	h->config.flash_path = "/tmp";
	assert_true(harness_try_open(h) != FS_OK);
	assert_non_null(strstr(h->reason, "flash-path"));
	h->config.flash_path = "/dev/null";
	assert_true(harness_try_open(h) != FS_OK);
	assert_non_null(strstr(h->reason, "flash-path"));
}

static void a_second_opener_is_refused(void **state)
{
	struct harness *h = *state;
	struct store *second = NULL;
	char reason[256];

	harness_open(h);
	assert_int_equal(store_open(&second, &h->config, reason), FS_EBUSY);
	assert_non_null(strstr(reason, h->path));
	set_on_flash(h, "key", "value"); /* the first is none the worse */
	assert_value(h, "key", "value");
}

static void a_second_process_is_refused(void **state)
{
	struct harness *h = *state;
	int status;

	harness_open(h);
	pid_t child = fork();
	if (child == 0) {
		struct store *second = NULL;
		char reason[256];

		_exit(store_open(&second, &h->config, reason) == FS_EBUSY ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void after_a_refusal_the_same_path_opens(void **state)
{
	struct harness *h = *state;

	h->config.segment_bytes = KIB(32);
	assert_refused(h, FS_ERANGE, "segment-size", NULL);
	h->config.segment_bytes = KIB(64);
	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_value(h, "key", "value");
}

/* Segments of an operator's choice may leave too little for objects: better no start than a cache that keeps nothing. */
static void too_little_memory_for_the_segments_is_refused_with_what_is_enough(void **state)
{
	struct harness *h = *state;
	struct store_status status;
	unsigned enough = 0;

	h->config.memory_bytes = MIB(4);
	h->config.segment_bytes = KIB(64);
	h->config.flash_bytes = MIB(4096); /* in so many segments that their table is larger than -m */
	assert_refused(h, FS_ERANGE, "memory-limit: 4.00 MiB", "segments of 64 KiB");
	assert_int_equal(sscanf(strstr(h->reason, ", -m "), ", -m %u", &enough), 1);
	assert_in_range(enough, 5, 32);
	h->config.memory_bytes = MIB(enough);
	harness_open(h);
	store_get_status(h->store, &status);
	assert_true(status.dram_budget >= MIB(enough) / 4);
}

static void a_file_of_other_content_is_refused(void **state)
{
	struct harness *h = *state;
	char junk[4096];
	int fd = open(h->path, O_CREAT | O_WRONLY, 0600);

	memset(junk, 'j', sizeof(junk));
	for (int i = 0; i < 300; i++)
		assert_int_equal(write(fd, junk, sizeof(junk)), sizeof(junk));
	close(fd);
	assert_refused(h, FS_EFOREIGN, "flash-path", "remove the file");
	assert_non_null(strstr(h->reason, h->path));
	unlink(h->path);
	harness_open(h);
	set_on_flash(h, "key", "value");
	assert_value(h, "key", "value");
}

/* ---- --flash-min-free ------------------------------------------------------------------------ */

static bool file_is_there(const struct harness *h)
{
	return access(h->path, F_OK) == 0;
}

static void expect_without_flash(struct harness *h, const char *cause)
{
	struct store_status status;

	harness_open(h);
	store_get_status(h->store, &status);
	assert_false(status.flash);
	assert_non_null(status.without_flash);
	assert_non_null(strstr(status.without_flash, h->path));
	assert_non_null(strstr(status.without_flash, cause));
	assert_false(file_is_there(h));
	set(h, "key", "value");
	assert_value(h, "key", "value");
}

static void without_the_option_a_full_file_system_ends_the_start(void **state)
{
	struct harness *h = *state;

	if (!HAVE_FAULTS)
		skip();
	fault_arm(FAULT_device_file_full, FAULT_EVERY, 1);
	assert_int_equal(harness_try_open(h), FS_ESYS);
	assert_non_null(strstr(h->reason, ": it would take "));
	assert_non_null(strstr(h->reason, strerror(ENOSPC)));
	assert_false(file_is_there(h));
	fault_disarm_all();
}

static void with_it_memory_alone_is_used(void **state)
{
	struct harness *h = *state;
	uint64_t fixed_bytes;

	if (!HAVE_FAULTS)
		skip();
	h->config.flash_min_free = 1;
	fault_arm(FAULT_device_file_full, FAULT_EVERY, 1);
	expect_without_flash(h, strerror(ENOSPC));
	fault_disarm_all();
	/* Nothing is left of the memory that the flash would have needed. */
	fixed_bytes = h->store->fixed_bytes;
	harness_close(h);
	h->config.flash_path = NULL;
	h->config.flash_min_free = 0;
	harness_open(h);
	assert_int_equal(h->store->fixed_bytes, fixed_bytes);
}

static void other_errors_end_the_start_all_the_same(void **state)
{
	struct harness *h = *state;

	h->config.flash_min_free = MORE_THAN_THERE_IS;
	h->config.flash_path = "/nonexistent/flash";
	assert_int_equal(harness_try_open(h), FS_ESYS);
	assert_non_null(strstr(h->reason, "/nonexistent/flash"));
}

static void too_little_room_makes_no_file(void **state)
{
	struct harness *h = *state;

	h->config.flash_min_free = MORE_THAN_THERE_IS;
	expect_without_flash(h, "are free there, --flash-min-free asks for 1.00 EiB");
}

static void a_file_of_the_size_is_used_whatever_is_free(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	harness_close(h);
	h->config.flash_min_free = MORE_THAN_THERE_IS;
	harness_open(h);
	store_get_status(h->store, &status);
	assert_true(status.flash);
	assert_null(status.without_flash);
}

/* As a start leaves it that was killed: blocks for all of it, and a size that tells how far the zeros got. */
static void what_a_cut_start_has_reserved_counts_as_free(void **state)
{
	struct harness *h = *state;
	uint64_t before = seg_free_bytes(h->path, MIB(256)), after;
	int fd = open(h->path, O_RDWR | O_CREAT, 0600);

	assert_true(fd >= 0);
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)MIB(256)) != 0) {
		close(fd);
		skip();
	}
	after = seg_free_bytes(h->path, MIB(256));
	assert_true(after + MIB(128) > before); /* others write on this file system too */
	assert_int_equal(ftruncate(fd, (off_t)MIB(256)), 0);
	assert_true(seg_free_bytes(h->path, MIB(256)) == UINT64_MAX);
	close(fd);
}

/* ---- what is open ---------------------------------------------------------------------------- */

static void tags_take_all_bits_left_over_unless_fewer_are_asked_for(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.info.segments, 16);
	assert_int_equal(status.tag_bits, 32 - 7 - 5); /* 16 numbers and "empty" take five bits */
	harness_close(h);
	h->config.tag_bits = 3;
	harness_open(h);
	store_get_status(h->store, &status);
	assert_int_equal(status.tag_bits, 3);
}

static void the_same_file_opens_again_and_again_with_other_sizes(void **state)
{
	struct harness *h = *state;

	for (unsigned i = 1; i <= 4; i++) {
		h->config.segment_bytes = KIB(64) * i;
		h->config.functions = 4 * i;
		harness_open(h);
		assert_missing(h, "key");
		set_on_flash(h, "key", "value");
		assert_value(h, "key", "value");
		harness_close(h);
	}
}

static unsigned threads_left = UINT_MAX; /* that can still be made */

/* Stands in for libc's, so that a start can fail. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*entry)(void *), void *context)
{
	static int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

	if (threads_left == 0)
		return EAGAIN;
	if (threads_left != UINT_MAX)
		threads_left--;
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
	return real(thread, attributes, entry, context);
}

/* Keeper, cleaner and trainer: whichever can't be made, the others don't run either. */
static void a_start_that_fails_leaves_no_thread_and_may_be_tried_again(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (unsigned made = 0; made < 3; made++) {
		threads_left = made;
		errno = 0;
		int result = store_start(h->store), error = errno;
		assert_int_equal(threads_left, 0);
		threads_left = UINT_MAX; /* whatever is found wrong */
		assert_int_equal(result, FS_ESYS);
		assert_int_equal(error, EAGAIN);
		assert_false(h->store->keeper->background.threaded);
		assert_false(h->store->cleaner->background.threaded);
		set_on_flash(h, "key", "value"); /* by the test's own steps */
		assert_value(h, "key", "value");
	}
	assert_int_equal(store_start(h->store), FS_OK);
	assert_true(h->store->keeper->background.threaded);
	store_stop(h->store);
}

static void threads_start_and_stop_as_often_as_asked(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(store_start(h->store), FS_OK);
		set(h, "key", "value");
		store_stop(h->store);
	}
	assert_value(h, "key", "value");
}

/* ---- tuning ---------------------------------------------------------------------------------- */

static void tune(struct harness *h, uint64_t limit, enum clf_admission admission)
{
	store_set_tuning(h->store, &(struct store_tuning){ .hot_fraction = 0.5,
							   .flash_write_limit = limit,
							   .read_timeout_ms = 1000,
							   .admission = admission });
}

/* What the budget had asked for must not outlive the limit. */
static void without_a_limit_the_threshold_is_back_at_nothing(void **state)
{
	struct harness *h = *state;
	struct store_status status;

	harness_open(h);
	tune(h, KIB(1), CLF_ADMIT_ALL);
	for (int i = 0; i < 300; i++) {
		h->store->cleaner->held_up = true;
		seconds_pass(h, 1);
		store_tick(h->store);
	}
	store_get_status(h->store, &status);
	assert_true(status.classifier.threshold > 0);
	assert_int_equal(status.write_limit, KIB(1));
	tune(h, 0, CLF_ADMIT_ALL);
	seconds_pass(h, 1);
	store_tick(h->store);
	store_get_status(h->store, &status);
	assert_true(status.classifier.threshold == 0);
	assert_int_equal(status.write_limit, 0);
}

/* Under a rule that asks at eviction the threshold is one of worth, which any object has then. */
static void without_a_limit_every_worth_is_enough(void **state)
{
	struct harness *h = *state;
	double lowest;

	h->config.admission = CLF_ADMIT_FREQ;
	h->config.flash_write_ratio = 0.1;
	harness_open(h);
	harness_end_fill(h);
	lowest = (double)clf_threshold(h->store->classifier);
	set(h, "key", "value");
	assert_true(worth_of(h, "key") > lowest);
	for (int i = 0; i < 10; i++) {
		const struct item *item = item_in_dram(h, "key");
		const struct clf_features features = item_features(item);
		const struct clf_object object = item_as_clf_object(h->store, item, &features, 1, clk_now_ms(&h->clk));

		(void)!clf_offer(h->store->classifier, &object, clk_now_ms(&h->clk));
		set(h, "key", "value");
		seconds_pass(h, 1);
		store_tick(h->store);
	}
	assert_true((double)clf_threshold(h->store->classifier) > lowest);
	tune(h, 0, CLF_ADMIT_FREQ); /* and no ratio */
	seconds_pass(h, 1);
	store_tick(h->store);
	assert_true((double)clf_threshold(h->store->classifier) == lowest);
}

static void a_new_share_moves_the_hot_threshold(void **state)
{
	struct harness *h = *state;

	harness_open(h);
	uint64_t before = store_hot_threshold(h->store);
	tune(h, 0, CLF_ADMIT_ALL); /* 0.7 -> 0.5 */
	assert_true(store_hot_threshold(h->store) < before);
}

static void *change(void *context)
{
	struct harness *h = context;

	for (unsigned i = 0; i < CHANGES; i++)
		tune(h, i % 3 ? MIB(1) << i % 7 : 0, (enum clf_admission)(i % (CLF_ADMIT_ALL + 1)));
	return NULL;
}

/* For TSan: values change beside commands and the cleaner's steps. */
static void values_change_beside_everything(void **state)
{
	struct harness *h = *state;
	pthread_t changer;
	char key[24], value[500] = "";

	harness_open(h);
	assert_int_equal(pthread_create(&changer, NULL, change, h), 0);
	for (unsigned n = 0; n < 4 * CHANGES; n++) {
		snprintf(key, sizeof(key), "key:%u", n % 500);
		assert_int_equal(
			run_full(h, .op = STORE_SET, .key = key, .value = value, .length = sizeof(value)).result,
			STORE_STORED);
		(void)get(h, key);
		store_clean_step(h->store);
		if (n % 100 == 0)
			seconds_pass(h, 1);
	}
	assert_int_equal(pthread_join(changer, NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_path_that_can_not_be_is_refused_with_its_name),
		TEST(a_second_opener_is_refused),
		TEST(a_second_process_is_refused),
		TEST(after_a_refusal_the_same_path_opens),
		TEST(too_little_memory_for_the_segments_is_refused_with_what_is_enough),
		TEST(a_file_of_other_content_is_refused),
		TEST(without_the_option_a_full_file_system_ends_the_start),
		TEST(with_it_memory_alone_is_used),
		TEST(other_errors_end_the_start_all_the_same),
		TEST(too_little_room_makes_no_file),
		TEST(a_file_of_the_size_is_used_whatever_is_free),
		TEST(what_a_cut_start_has_reserved_counts_as_free),
		TEST(tags_take_all_bits_left_over_unless_fewer_are_asked_for),
		TEST(the_same_file_opens_again_and_again_with_other_sizes),
		TEST(a_start_that_fails_leaves_no_thread_and_may_be_tried_again),
		TEST(threads_start_and_stop_as_often_as_asked),
		TEST(without_a_limit_the_threshold_is_back_at_nothing),
		TEST(without_a_limit_every_worth_is_enough),
		TEST(a_new_share_moves_the_hot_threshold),
		TEST(values_change_beside_everything),
	};

	return cmocka_run_group_tests_name("store: opening", tests, NULL, NULL);
}

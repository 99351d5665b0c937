/* SPDX-License-Identifier: BSD-3-Clause */
/* Flash and state files that don't belong together, or are damaged: each such start is cold. */
#include "tests/unit/server/store/state/restarting.h"

#define STATE_MOST (1u << 20)

/* ---- files that don't belong together -------------------------------------------------------- */

struct bytes {
	char *at;
	size_t length;
};

static struct bytes file_get(const char *path, size_t most)
{
	int fd = open(path, O_RDONLY);
	struct bytes bytes = { mem_must_zalloc(most), 0 };
	ssize_t length = read(fd, bytes.at, most);

	assert_true(length > 0);
	bytes.length = (size_t)length;
	close(fd);
	return bytes;
}

/* Writes the first bytes of a file anew; all of it when it is made. */
static void file_put(const char *path, const struct bytes *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(pwrite(fd, bytes->at, length, 0), length);
	close(fd);
}

static void no_file_is_used_twice(void **state)
{
	struct harness *h = *state;
	struct bytes file;

	one_run(h);
	file = file_get(state_path, STATE_MOST);
	assert_int_equal(start_again(h), STORE_START_WARM);
	harness_close(h);
	file_put(state_path, &file, file.length);
	assert_cold(h, UNCLEAN);
	stop_cleanly(h);
	file_put(state_path, &file, file.length); /* yesterday's, beside a flash that ended cleanly since */
	assert_cold(h, OTHER_START);
	mem_free(file.at);
}

static void the_file_of_another_flash_is_left_alone(void **state)
{
	struct harness *h = *state;
	struct bytes file;

	one_run(h);
	file = file_get(state_path, STATE_MOST);
	unlink(h->path);
	one_run(h);
	file_put(state_path, &file, file.length);
	assert_cold(h, OTHER_FLASH);
	assert_int_equal(access(state_path, F_OK), 0);
	mem_free(file.at);
}

/* An older copy of the flash, superblock and all, beside the state of a later run: values have changed since. */
static void a_restored_copy_of_the_flash_starts_cold(void **state)
{
	struct harness *h = *state;
	struct bytes file, flash;

	one_run(h);
	flash = file_get(h->path, h->config.flash_bytes);
	file = file_get(state_path, STATE_MOST);
	assert_int_equal(start_again(h), STORE_START_WARM);
	set_on_flash(h, "key", "changed");
	stop_cleanly(h);
	file_put(h->path, &flash, flash.length);
	assert_cold(h, OTHER_START);
	harness_close(h);
	/* Both are of the same, earlier run: nothing tells them from a stop that came just before. */
	file_put(h->path, &flash, flash.length);
	file_put(state_path, &file, file.length);
	assert_int_equal(start_again(h), STORE_START_WARM);
	mem_free(file.at);
	mem_free(flash.at);
}

/* After a clean stop: starts anew from the same flash, each time with a file changed in another way. */
struct trials {
	struct bytes file, super;
};

static void trials_begin(struct harness *h, struct trials *trials)
{
	h->config.filter_bits = 4;
	harness_open(h);
	set_on_flash(h, "key", "value");
	stop_cleanly(h);
	trials->file = file_get(state_path, STATE_MOST);
	trials->super = file_get(h->path, SUPER_AREA);
	assert_true(trials->file.length < STATE_MOST && trials->super.length == SUPER_AREA);
}

static enum store_start trial(struct harness *h, const struct trials *trials, size_t length)
{
	enum store_start start;

	unlink(state_path);
	file_put(state_path, &trials->file, length);
	file_put(h->path, &trials->super, trials->super.length);
	start = start_again(h);
	if (start != STORE_START_WARM)
		assert_missing(h, "key");
	harness_close(h);
	return start;
}

static void trials_end(struct trials *trials)
{
	mem_free(trials->file.at);
	mem_free(trials->super.at);
}

static void a_flipped_bit_anywhere_starts_cold(void **state)
{
	struct harness *h = *state;
	struct trials trials;

	trials_begin(h, &trials);
	for (size_t at = 0; at < trials.file.length; at += at < 400 ? 7 : trials.file.length / 97) {
		enum store_start start;

		trials.file.at[at] = (char)(trials.file.at[at] ^ 4);
		start = trial(h, &trials, trials.file.length);
		if (start != (at >= 8 && at < 16 ? STORE_START_VERSION : STORE_START_DAMAGED))
			fail_msg("byte %zu: %s", at, store_start_word(start));
		trials.file.at[at] = (char)(trials.file.at[at] ^ 4);
	}
	assert_int_equal(trial(h, &trials, trials.file.length), STORE_START_WARM);
	trials_end(&trials);
}

static void a_truncated_file_starts_cold(void **state)
{
	struct harness *h = *state;
	struct trials trials;

	trials_begin(h, &trials);
	for (unsigned part = 0; part < 40; part++)
		assert_int_equal(trial(h, &trials, trials.file.length * part / 40), STORE_START_DAMAGED);
	assert_int_equal(trial(h, &trials, trials.file.length - 1), STORE_START_DAMAGED);
	trials_end(&trials);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RESTART_TEST(no_file_is_used_twice),
		RESTART_TEST(a_restored_copy_of_the_flash_starts_cold),
		RESTART_TEST(the_file_of_another_flash_is_left_alone),
		RESTART_TEST(a_flipped_bit_anywhere_starts_cold),
		RESTART_TEST(a_truncated_file_starts_cold),
	};

	return cmocka_run_group_tests_name("restart: files", tests, NULL, NULL);
}

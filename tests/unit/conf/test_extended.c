/* SPDX-License-Identifier: BSD-3-Clause */
/* memcached's -o list. */
#include <string.h>

#include "tests/unit/conf/conf_test.h"

static void unknown_suboptions_end_as_in_memcached(void **state)
{
	(void)state;
	expect_refusal("-o nonsense", NULL, 1, "Illegal suboption \"nonsense\"\n");
	expect_refusal("-o modern,nonsense=3,ext_path=/f:1g", NULL, 1, "Illegal suboption \"nonsense=3\"\n");
	expect_refusal("-o ,", NULL, 1, "Illegal suboption \"\"\n");
	expect_refusal("-o temp_lru=1", NULL, 1, "Illegal suboption \"temp_lru=1\"\n");
}

static void what_a_suboption_does_not_accept_is_said_as_in_memcached(void **state)
{
	static const struct {
		const char *words, *text;
	} cases[] = {
		{ "-o hashpower", "Missing numeric argument for hashpower\n" },
		{ "-o hashpower=11", "Initial hashtable multiplier of 11 is too low\n" },
		{ "-o hashpower=33", "Initial hashtable multiplier of 33 is too high\nChoose a value based on \"STAT "
				     "hash_power_level\" from a running instance\n" },
		{ "-o slab_sizes", "Missing slab_sizes argument\n" },
		{ "-o lru_crawler_sleep", "Missing lru_crawler_sleep value\n" },
		{ "-o lru_crawler_tocrawl=-1", "lru_crawler_tocrawl takes a numeric 32bit value\n" },
		{ "-o watcher_logbuf_size=5x", "could not parse argument to watcher_logbuf_size\n" },
		{ "-o watcher_logbuf_size=-1", "could not parse argument to watcher_logbuf_size\n" },
		{ "-o ext_threads=4294967296",
		  "ext_threads: \"4294967296\" is not a whole number from 0 to 4294967295\n" },
		{ "-o ssl_wbuf_size=4194304",
		  "ssl_wbuf_size: \"4194304\" is not a whole number from 0 to 4194303 KiB\n" },
		{ "-o ext_max_frag=nan", "could not parse argument to ext_max_frag\n" },
		{ "-o hot_max_factor=0", "hot_max_factor must be > 0\n" },
		{ "-o ssl_verify_mode=4", "Invalid ssl_verify_mode. Use help to see valid options.\n" },
		{ "-o hash_algorithm=md5", "Unknown hash_algorithm option (jenkins, murmur3, xxh3)\n" },
		{ "-o ssl_key", "Missing ssl_key argument\n" },
		{ "-o tail_repair_time=9", "Cannot set tail_repair_time to less than 10 seconds\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		expect_refusal(cases[i].words, NULL, 1, cases[i].text);
}

#define NO_SIZE "must supply size to ext_path, ie: ext_path=/f/e:64m (M|G|T|P supported)\n"
#define NOT_PARSED "failed to parse ext_path argument\n"

static void a_bad_ext_path_is_refused(void **state)
{
	(void)state;
	expect_refusal("-o ext_path", NULL, 1, "missing argument to ext_path, ie: ext_path=/d/file:5G\n");
	expect_refusal("-o ext_path=", NULL, 1, NOT_PARSED);
	expect_refusal("-o ext_path=/f", NULL, 1, NO_SIZE NOT_PARSED);
	expect_refusal("-o ext_path=:1g", NULL, 1, NO_SIZE NOT_PARSED);
	expect_refusal("-o ext_path=/f:64", NULL, 1,
		       "ext_path: \"64\" is not a size with the suffix m, g, t or p, as in ext_path=/data/flash:64g\n");
	expect_refusal(
		"-o ext_path=/f:64MB", NULL, 1,
		"ext_path: \"64MB\" is not a size with the suffix m, g, t or p, as in ext_path=/data/flash:64g\n");
	expect_refusal("-o ext_path=/f:\t", NULL, 1,
		       "ext_path: \"\" is not a size with the suffix m, g, t or p, as in ext_path=/data/flash:64g\n");
	expect_refusal("-o ext_path=/f:xg", NULL, 1,
		       "ext_path: \"xg\" is not a size with the suffix m, g, t or p, as in ext_path=/data/flash:64g\n");
	expect_refusal("-o ext_path=/f:0m", NULL, 1,
		       "ext_path: \"0m\" is not a size with the suffix m, g, t or p, as in ext_path=/data/flash:64g\n");
	expect_refusal("-o ext_path=/f:1g:attic", NULL, 1, "Unknown extstore bucket: attic\n" NOT_PARSED);
	expect_refusal("-o ext_path=/f:1g:default:old", NULL, 1, "Unknown extstore bucket: default:old\n" NOT_PARSED);
}

/* extstore's suboptions may stand in any order, as the newest memcached takes them. */
static void a_page_size_may_follow_its_path(void **state)
{
	struct loaded before, after;

	(void)state;
	load(&before, "-o ext_page_size=8,ext_path=/f:1g", NULL);
	load(&after, "-o ext_path=/f:1g,ext_page_size=8", NULL);
	assert_int_equal(before.rc, FS_OK);
	assert_int_equal(after.rc, FS_OK);
	assert_int_equal(before.conf.ext_page_size, after.conf.ext_page_size);
	assert_int_equal(before.conf.ext_drop_under, after.conf.ext_drop_under);
	assert_int_equal(before.conf.flash_size_bytes, after.conf.flash_size_bytes);
	unload(&after);
	unload(&before);
}

static void suboptions_set_their_fields(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded,
	     "-o no_maxconns_fast,idle_timeout=5x,watcher_logbuf_size=1,ssl_key=k,slab_automove=2,slab_automove,"
	     "hash_algorithm=xxh3,hot_max_factor=0.5,temporary_ttl=,no_lru_crawler=why,read_buf_mem_limit=3",
	     NULL);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	assert_false(loaded.conf.maxconns_fast);
	assert_int_equal(loaded.conf.idle_timeout_seconds, 5);
	assert_true(loaded.conf.watcher_logbuf_size == 1024 && loaded.conf.worker_logbuf_size == 65536);
	assert_true(loaded.conf.read_buf_mem_limit == 3 << 20);
	assert_string_equal(loaded.conf.ssl_key, "k");
	assert_int_equal(loaded.conf.slab_automove, 1);
	assert_int_equal(loaded.conf.hash_algorithm, 2);
	assert_true(loaded.conf.hot_max_factor == 0.5);
	assert_true(loaded.conf.temp_lru && loaded.conf.temporary_ttl == 0);
	assert_false(loaded.conf.lru_crawler);
	unload(&loaded);
}

static void no_modern_stands_for_others(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "-o no_modern,hot_lru_pct=30", NULL);
	assert_int_equal(loaded.rc, FS_OK);
	assert_false(loaded.conf.maxconns_fast || loaded.conf.slab_reassign || loaded.conf.lru_crawler ||
		     loaded.conf.lru_maintainer);
	assert_int_equal(loaded.conf.slab_automove, 0);
	assert_int_equal(loaded.conf.hash_algorithm, 0);
	assert_int_equal(loaded.conf.hot_lru_pct, 30);
	unload(&loaded);
}

static void ext_path_is_the_flash_file(void **state)
{
	static const struct {
		const char *words;
		uint64_t bytes;
	} forms[] = {
		{ "-m 64 -o ext_path=/data/f:1T", 1ull << 40 },
		{ "-o ext_path=/data/f:64m", 64ull << 20 },
		{ "-o ext_path=/data/f:\t64m\t", 64ull << 20 },
		{ "-o ext_path=/data/f:5G:default", 5ull << 30 },
		{ "-o modern,ext_path=/data/f:8t", 8ull << 40 },
		{ "-o modern,ext_path=/data/f:1p", 8ull << 40 },
		{ "--extended=ext_path=/data/f:2g,", 2ull << 30 },
		{ "-o ext_path=/data/f:2g:compact", 2ull << 30 },
		{ "-o ext_path=/data/f:2g:old", 2ull << 30 },
		{ "-o ext_path=/data/f:2g:lowttl", 2ull << 30 },
		{ "-o ext_path=/data/f:2g:chunked", 2ull << 30 },
		{ "-o ext_path=/data/f:2g:coldcompact", 2ull << 30 },
		/* Of several the first one without a bucket, else the first one. */
		{ "-o ext_path=/data/f:2g,ext_path=/b:1g", 2ull << 30 },
		{ "-o ext_path=/b:1g:old,ext_path=/data/f:2g,ext_path=/c:3g", 2ull << 30 },
		{ "-o ext_path=/data/f:2g:old,ext_path=/b:1g:compact", 2ull << 30 },
	};
	struct loaded loaded;

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		load(&loaded, forms[i].words, NULL);
		assert_string_equal(loaded.err, "");
		assert_int_equal(loaded.rc, FS_OK);
		assert_string_equal(loaded.conf.flash_path, "/data/f");
		assert_true(loaded.conf.flash_size_bytes == forms[i].bytes);
		unload(&loaded);
	}
}

static const struct conf_note *note_about(const struct conf *conf, const char *word)
{
	const struct conf_note *note = conf->notes;

	while (note && !strstr(note->text, word))
		note = note->next;
	return note;
}

static void files_that_are_not_used_are_told(void **state)
{
	const struct conf_note *note;
	struct loaded loaded;

	(void)state;
	load(&loaded, "-o ext_path=/a:1g:old,ext_path=/b:9t,ext_path=/c:3g:compact", NULL);
	assert_int_equal(loaded.rc, FS_OK);
	note = note_about(&loaded.conf, "the bucket of ext_path=/a:1g:old is without effect");
	assert_true(note && note->level == LOG_LEVEL_INFO);
	note = note_about(&loaded.conf, "of ext_path=/b:9t only 8t are used");
	assert_true(note && note->level == LOG_LEVEL_WARN);
	note = note_about(&loaded.conf, "ext_path=/b:9t is used instead");
	assert_true(note && note->level == LOG_LEVEL_WARN);
	note = note_about(&loaded.conf, "ext_path=/c:3g:compact is not used: there is one flash file, /b");
	assert_true(note && note->level == LOG_LEVEL_WARN);
	unload(&loaded);
}

static void what_they_map_to_is_told(void **state)
{
	struct loaded loaded;
	const struct conf_note *note;

	(void)state;
	load(&loaded, "-o ext_path=/f:1g,ext_item_size=300,ext_drop_unread,no_lru_crawler,hashpower=20,slab_automove",
	     NULL);
	assert_int_equal(loaded.rc, FS_OK);
	note = note_about(&loaded.conf, "ext_path");
	assert_non_null(note);
	assert_string_equal(note->text, "ext_path is understood as --flash-path=/f --flash-size=1g");
	note = note_about(&loaded.conf, "ext_item_size");
	assert_non_null(note);
	assert_int_equal(note->level, LOG_LEVEL_INFO);
	assert_string_equal(
		note->text,
		"-o ext_item_size is without effect: objects of every size may go to flash, see --admission");
	note = note_about(&loaded.conf, "hashpower");
	assert_non_null(note);
	assert_int_equal(note->level, LOG_LEVEL_INFO);
	assert_null(note_about(&loaded.conf, "no_lru_crawler"));
	assert_non_null(note_about(&loaded.conf, "ext_drop_unread"));
	unload(&loaded);
}

static void of_two_flash_files_the_first_is_used(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "-o ext_path=/a:1g,ext_path=/b:2g", NULL);
	assert_int_equal(loaded.rc, FS_OK);
	assert_string_equal(loaded.conf.flash_path, "/a");
	assert_true(loaded.conf.flash_size_bytes == 1ull << 30);
	assert_non_null(note_about(&loaded.conf, "ext_path=/b:2g is not used"));
	unload(&loaded);
}

static void the_last_of_ext_path_and_flash_path_counts(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "-o ext_path=/a:1g --flash-path /b", NULL);
	assert_string_equal(loaded.conf.flash_path, "/b");
	assert_false(loaded.conf.flash_by_ext_path);
	unload(&loaded);
	load(&loaded, "--flash-path /b -o ext_path=/a:1g", NULL);
	assert_string_equal(loaded.conf.flash_path, "/a");
	assert_true(loaded.conf.flash_by_ext_path);
	unload(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_suboptions_end_as_in_memcached),
		cmocka_unit_test(what_a_suboption_does_not_accept_is_said_as_in_memcached),
		cmocka_unit_test(a_bad_ext_path_is_refused),
		cmocka_unit_test(a_page_size_may_follow_its_path),
		cmocka_unit_test(suboptions_set_their_fields),
		cmocka_unit_test(no_modern_stands_for_others),
		cmocka_unit_test(ext_path_is_the_flash_file),
		cmocka_unit_test(files_that_are_not_used_are_told),
		cmocka_unit_test(what_they_map_to_is_told),
		cmocka_unit_test(of_two_flash_files_the_first_is_used),
		cmocka_unit_test(the_last_of_ext_path_and_flash_path_counts),
	};

	return cmocka_run_group_tests_name("extended", tests, NULL, NULL);
}

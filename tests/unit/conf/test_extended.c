/* SPDX-License-Identifier: BSD-3-Clause */
/* memcached's -o list. */
#include <string.h>

#include "tests/unit/conf/conf_test.h"

static void unknown_suboptions_end_as_in_memcached(void **state)
{
	(void)state;
	expect_refusal("-o nonsense", NULL, 1, "Illegal suboption \"nonsense\"\n");
	expect_refusal("-o modern,nonsense=3,ext_path=/f:1g", NULL, 1, "Illegal suboption \"nonsense=3\"\n");
	expect_refusal("-o hashpower", NULL, 1, "Missing hashpower argument\n");
}

static void a_bad_ext_path_is_refused(void **state)
{
	(void)state;
	expect_refusal("-o ext_path", NULL, 1,
		       "ext_path: \"\" is not FILE:SIZE with a size like 64m, 10g or 1t\n");
	expect_refusal("-o ext_path=/f", NULL, 1,
		       "ext_path: \"/f\" is not FILE:SIZE with a size like 64m, 10g or 1t\n");
	expect_refusal("-o ext_path=:1g", NULL, 1,
		       "ext_path: \":1g\" is not FILE:SIZE with a size like 64m, 10g or 1t\n");
	expect_refusal("-o ext_path=/f:64", NULL, 1,
		       "ext_path: \"64\" is not a size with the suffix m, g, t or p, as in ext_path=/data/flash:64g\n");
	expect_refusal("-o ext_path=/f:xg", NULL, 1,
		       "ext_path: \"xg\" is not a size with the suffix m, g, t or p, as in ext_path=/data/flash:64g\n");
	expect_refusal("-o ext_path=/f:0m", NULL, 1,
		       "ext_path: \"0m\" is not a size with the suffix m, g, t or p, as in ext_path=/data/flash:64g\n");
	expect_refusal("-o ext_path=/f:1g:attic", NULL, 1,
		       "ext_path: \"attic\" is no bucket; these are: default compact lowttl chunked coldcompact old\n");
	expect_refusal("-o ext_path=/f:1g:compact:old", NULL, 1,
		       "ext_path: \"/f:1g:compact:old\" is not FILE:SIZE[:bucket]\n");
}

static void ext_path_is_the_flash_file(void **state)
{
	static const struct {
		const char *words;
		uint64_t bytes;
	} forms[] = {
		{"-m 64 -o ext_path=/data/f:1T", 1ull << 40},	   {"-o ext_path=/data/f:64m", 64ull << 20},
		{"-o ext_path=/data/f:5G:compact", 5ull << 30},	   {"-o modern,ext_path=/data/f:1p", 1ull << 50},
		{"--extended=ext_path=/data/f:2g,", 2ull << 30},
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

static void what_they_map_to_is_told(void **state)
{
	struct loaded loaded;
	const struct conf_note *note;

	(void)state;
	load(&loaded, "-o ext_path=/f:1g,ext_item_size=300,ext_drop_unread,no_lru_crawler,hashpower=20,slab_automove", NULL);
	assert_int_equal(loaded.rc, FS_OK);
	note = note_about(&loaded.conf, "ext_path");
	assert_non_null(note);
	assert_string_equal(note->text, "ext_path is understood as --flash-path=/f --flash-size=1g");
	note = note_about(&loaded.conf, "ext_item_size");
	assert_non_null(note);
	assert_int_equal(note->level, LOG_LEVEL_NOTICE);
	assert_string_equal(note->text,
			    "ext_item_size has no effect here: objects of every size may go to flash, see --admission");
	note = note_about(&loaded.conf, "hashpower");
	assert_non_null(note);
	assert_int_equal(note->level, LOG_LEVEL_INFO);
	assert_non_null(note_about(&loaded.conf, "no_lru_crawler"));
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
	unload(&loaded);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unknown_suboptions_end_as_in_memcached),
		cmocka_unit_test(a_bad_ext_path_is_refused),
		cmocka_unit_test(ext_path_is_the_flash_file),
		cmocka_unit_test(what_they_map_to_is_told),
		cmocka_unit_test(of_two_flash_files_the_first_is_used),
		cmocka_unit_test(the_last_of_ext_path_and_flash_path_counts),
	};

	return cmocka_run_group_tests_name("extended", tests, NULL, NULL);
}

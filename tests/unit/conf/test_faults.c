/* SPDX-License-Identifier: BSD-3-Clause */
/* --check-config: all mistakes are told, a line each; the exit code is that of a start. */
#include "tests/unit/conf/conf_test.h"

#include <stdlib.h>
#include <string.h>

#define ACCEPTED_THREADS "is not a whole number from 1 to 256 threads\n"

static int start_code(const char *words, const char *file_text)
{
	struct loaded loaded;
	int code;

	load(&loaded, words, file_text);
	code = loaded.conf.exit_code;
	assert_null(loaded.conf.faults);
	unload(&loaded);
	return code;
}

/* Loads the words with and without --check-config: the text of the first, and one exit code. In lines, @ is the file. */
static void expect_faults(const char *words, const char *file_text, const char *lines)
{
	struct loaded loaded;
	char checking[256], expected[4096] = "";

	snprintf(checking, sizeof(checking), "--check-config %s", words);
	load(&loaded, checking, file_text);
	assert_int_equal(loaded.rc, FS_OK);
	assert_non_null(loaded.conf.faults);
	for (const char *at = lines; *at; at++) {
		size_t length = strlen(expected);

		snprintf(expected + length, sizeof(expected) - length, "%.*s", *at == '@' ? 64 : 1,
			 *at == '@' ? loaded.conf.config_path : at);
	}
	assert_string_equal(loaded.err, expected);
	assert_string_equal(loaded.out, "");
	assert_int_equal(loaded.conf.exit_code, start_code(words, file_text));
	unload(&loaded);
}

static void all_mistakes_of_the_command_line_are_told(void **state)
{
	(void)state;
	expect_faults("-t 0 -p 99999 -m banana", NULL,
		      "-t/--threads: \"0\" " ACCEPTED_THREADS
		      "-p/--port: \"99999\" is not a whole number from -1 to 65535\n"
		      "-m/--memory-limit: \"banana\" is not a size from 1m to 1p, in MiB or with a suffix k m g t p\n");
	expect_faults("-B what -Q --no-such -t 0", NULL,
		      "flashield: invalid option -- 'Q'\n"
		      "flashield: unrecognized option '--no-such'\n"
		      "-B/--protocol: \"what\" is not one of auto ascii binary\n"
		      "-t/--threads: \"0\" " ACCEPTED_THREADS);
	expect_faults("-o foo,hashpower=99,bar=1", NULL,
		      "-o/--extended: Illegal suboption \"foo\"\n"
		      "-o/--extended: hashpower: \"99\" is not a whole number from 12 to 32\n"
		      "-o/--extended: Illegal suboption \"bar=1\"\n");
	expect_faults("-o ext_page_size=x,watcher_logbuf_size=-1,ssl_verify_mode=7,slab_automove_ratio=2", NULL,
		      "-o/--extended: ext_page_size: \"x\" is not a whole number from 0 to 4095 MiB\n"
		      "-o/--extended: watcher_logbuf_size: \"-1\" is not a whole number from 0 to 4194303 KiB\n"
		      "-o/--extended: ssl_verify_mode: \"7\" is not a whole number from 0 to 3\n"
		      "-o/--extended: slab_automove_ratio must be > 0 and < 1\n");
	expect_faults("-t", NULL, "flashield: option requires an argument -- 't'\n");
}

static void all_mistakes_of_a_file_are_told_with_their_lines(void **state)
{
	(void)state;
	expect_faults("--config @",
		      "threads = 0\n\n# port = 0\nno-such = 1\ngarbage\nport = 1\nport = 2\nhot-fraction=2\n",
		      "@:1: threads: \"0\" " ACCEPTED_THREADS "@:4: there is no option \"no-such\"\n"
		      "@:5: the line is not \"name = value\"\n"
		      "@:7: port is given a second time\n"
		      "@:8: hot-fraction: \"2\" is not a number from 0 to 1\n");
	expect_faults("--config @ -t x", "-t 0\n-Q\nfoo\n-p 0 -U x 'y\n",
		      "@:1: -t/--threads: \"0\" " ACCEPTED_THREADS "@:2: flashield: invalid option -- 'Q'\n"
		      "@:3: \"foo\" is not a flag\n"
		      "@:4: a quote is not closed, or there are more than 63 words\n"
		      "-t/--threads: \"x\" " ACCEPTED_THREADS);
	expect_faults("--config /nonexistent -t x", NULL,
		      "--config: \"/nonexistent\" can't be read: No such file or directory\n"
		      "-t/--threads: \"x\" " ACCEPTED_THREADS);
}

static void contradictions_are_told_unless_a_value_is_refused_itself(void **state)
{
	(void)state;
	expect_faults("--config @", "max-item-size = 64m\nmodel-pinned = yes\n",
		      "@:1: max-item-size: 64m is more than half of -m/--memory-limit, which is 64m\n"
		      "@:2: model-pinned: it keeps the model of --model, which is not given\n");
	expect_faults("-S -B ascii -o hot_lru_pct=70,warm_lru_pct=70", NULL,
		      "--extended: hot_lru_pct + warm_lru_pct cannot be more than 80% combined\n"
		      "--protocol: ERROR: You cannot allow the ASCII protocol while using SASL.\n");
	expect_faults(
		"--config @ -p 9151", "segment-size = 32m\nflash-size = 64m\njournal = sync\n",
		"@:1: segment-size: 32m is more than a quarter of --flash-size, which is 64m\n"
		"--metrics-listen: at 127.0.0.1:9151 the cache itself listens, by -p/--port or -l/--listen; take another "
		"port, or off\n"
		"@:3: journal: sync takes --flash-path and --state-dir\n");
	expect_faults("-I 64m -m g1", NULL,
		      "-m/--memory-limit: \"g1\" is not a size from 1m to 1p, in MiB or with a suffix k m g t p\n");
}

static void good_options_have_no_faults(void **state)
{
	struct loaded loaded;
	char origin[CONF_ORIGIN_BYTES];

	(void)state;
	load(&loaded, "--check-config --config @ -t 2", "hot-fraction = 0.5\nthreads = 3\n");
	assert_int_equal(loaded.rc, FS_OK);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.conf.exit_code, 0);
	assert_int_equal(loaded.conf.threads, 2);
	assert_non_null(strstr(conf_origin(&loaded.conf, "hot-fraction", origin), ":1: "));
	assert_string_equal(conf_origin(&loaded.conf, "threads", origin), ""); /* the command line counts */
	unload(&loaded);
	load(&loaded, "--check-config -V", NULL);
	assert_int_equal(loaded.rc, CONF_EXIT);
	unload(&loaded);
	expect_refusal("--config @", "check-config = yes\n", 64, "@:1: check-config: it belongs on the command line\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_mistakes_of_the_command_line_are_told),
		cmocka_unit_test(all_mistakes_of_a_file_are_told_with_their_lines),
		cmocka_unit_test(contradictions_are_told_unless_a_value_is_refused_itself),
		cmocka_unit_test(good_options_have_no_faults),
	};

	return cmocka_run_group_tests_name("conf: all faults", tests, NULL, NULL);
}

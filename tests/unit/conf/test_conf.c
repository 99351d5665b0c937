/* SPDX-License-Identifier: BSD-3-Clause */
/* Options: each type, ranges, error texts, the file, and what overrides what. */
#include <stdlib.h>
#include <string.h>

#include "conf/version.h"
#include "tests/unit/conf/conf_test.h"

static void a_bad_value_is_named_with_what_is_accepted(void **state)
{
	(void)state;
	expect_refusal("--flash-write-ratio 0.2x", NULL, 64,
		       "--flash-write-ratio: \"0.2x\" is not a number from 0 to 100\n");
	expect_refusal(
		"--flash-size +4g", NULL, 64,
		"--flash-size: \"+4g\" is not a size from 256k to 8t, in bytes or with a suffix k m g t p, or auto\n");
	expect_refusal(
		"--flash-size 8193g", NULL, 64,
		"--flash-size: \"8193g\" is not a size from 256k to 8t, in bytes or with a suffix k m g t p, or auto\n");
	expect_refusal("-p 65536", NULL, 64, "-p/--port: \"65536\" is not a whole number from -1 to 65535\n");
	expect_refusal("-p -2", NULL, 64, "-p/--port: \"-2\" is not a whole number from -1 to 65535\n");
	expect_refusal("-U 65536", NULL, 64, "-U/--udp-port: \"65536\" is not a whole number from -1 to 65535\n");
	expect_refusal(
		"-c 99999999999999999999", NULL, 64,
		"-c/--conn-limit: \"99999999999999999999\" is not a whole number from 1 to 10000000 connections\n");
	expect_refusal(
		"--segment-size=65537", NULL, 64,
		"--segment-size: \"65537\" is not a size from 64k to 512m, in bytes or with a suffix k m g t p, a multiple of "
		"4096, or auto\n");
	expect_refusal(
		"--training-window 5y", NULL, 64,
		"--training-window: \"5y\" is not a time from 1ms to 365d, in seconds or with a suffix us ms s m h d\n");
	expect_refusal(
		"--training-window 0", NULL, 64,
		"--training-window: \"0\" is not a time from 1ms to 365d, in seconds or with a suffix us ms s m h d\n");
	expect_refusal(
		"--flash-write-limit fast", NULL, 64,
		"--flash-write-limit: \"fast\" is not a rate from 0 to 1p/s, in bytes per second or with a suffix k m g t p, "
		"or an endurance: 1200TBW/5y (0.1 to 100 years), 1DWPD of the flash or 1DWPD/1920g of a drive (0.000001 to 1000 "
		"DWPD)\n");
	expect_refusal("--hot-fraction 1.01", NULL, 64, "--hot-fraction: \"1.01\" is not a number from 0 to 1\n");
	expect_refusal("--promote hot", NULL, 64, "--promote: \"hot\" is not one of off sketch lru second\n");
	expect_refusal("--promote-share 0", NULL, 64,
		       "--promote-share: \"0\" is not a number from 0.001 to 0.5, or auto\n");
	expect_refusal("--promote-miss-cost -1", NULL, 64,
		       "--promote-miss-cost: \"-1\" is not a number from 0 to 1000000 reads\n");
	expect_refusal("--hot-fraction nan", NULL, 64, "--hot-fraction: \"nan\" is not a number from 0 to 1\n");
	expect_refusal("-a 8", NULL, 64, "-a/--unix-mask: \"8\" is not an octal number from 0 to 777\n");
	expect_refusal("--clock-mode fifo", NULL, 64, "--clock-mode: \"fifo\" is not one of lru mfu\n");
	expect_refusal("--clock-mode lr", NULL, 64, "--clock-mode: \"lr\" is not one of lru mfu\n");
	expect_refusal("--app-delimiter ::", NULL, 64, "--app-delimiter: \"::\" is not one printable character\n");
	expect_refusal("--daemon=maybe", NULL, 64, "-d/--daemon: \"maybe\" is not yes or no\n");
	expect_refusal("--tag-bits 1", NULL, 64,
		       "--tag-bits: \"1\" is not a whole number from 2 to 24 bits, or auto\n");
	expect_refusal("--flash-path=", NULL, 64, "--flash-path: \"\" is not text of 1 to 4095 bytes\n");
	expect_refusal("--promote-threshold 26", NULL, 64,
		       "--promote-threshold: \"26\" is not a number from 0 to 25 percent\n");
}

/* What is accepted stands behind a value of any length, and no byte of it breaks the line. */
static void a_long_or_odd_value_is_cut_and_escaped(void **state)
{
	char words[512] = "--unix-socket ", text[512];

	(void)state;
	memset(words + strlen(words), 'x', 300);
	snprintf(text, sizeof(text), "-s/--unix-socket: \"%.73s...\" is not text of 1 to 107 bytes\n",
		 words + strlen("--unix-socket "));
	expect_refusal(words, NULL, 64, text);
	expect_refusal("--hot-fraction 1\x1b\t\x7f", NULL, 64,
		       "--hot-fraction: \"1\\x1b\\x09\\x7f\" is not a number from 0 to 1\n");
}

static void unknown_options_end_as_in_memcached(void **state)
{
	(void)state;
	expect_refusal("--nonsense", NULL, 1, "flashield: unrecognized option '--nonsense'\nIllegal argument \"?\"\n");
	expect_refusal("-x", NULL, 1, "flashield: invalid option -- 'x'\nIllegal argument \"?\"\n");
	expect_refusal("-p", NULL, 1, "flashield: option requires an argument -- 'p'\nIllegal argument \"?\"\n");
	expect_refusal("--port", NULL, 1, "flashield: option '--port' requires an argument\nIllegal argument \"?\"\n");
	expect_refusal("--help=all", NULL, 1,
		       "flashield: option '--help' doesn't allow an argument\nIllegal argument \"?\"\n");
	expect_refusal("--version=", NULL, 1,
		       "flashield: option '--version' doesn't allow an argument\nIllegal argument \"?\"\n");
}

static void mistakes_in_the_file_name_file_and_line(void **state)
{
	(void)state;
	expect_refusal("--config /nonexistent/x", NULL, 64,
		       "--config: \"/nonexistent/x\" can't be read: No such file or directory\n");
	expect_refusal("--config /", NULL, 64, "--config: \"/\" can't be read: Is a directory\n");
	expect_refusal("--config @", "# one\n\nthreads = 0\n", 64,
		       "@:3: threads: \"0\" is not a whole number from 1 to 256 threads\n");
	expect_refusal("--config @", "port = 1\nthread = 4\n", 1, "@:2: there is no option \"thread\"\n");
	expect_refusal("--config @", "port = 1\nnonsense\n", 64, "@:2: the line is not \"name = value\"\n");
	expect_refusal("--config @", "[server]\nport = 1\n", 64, "@:2: [server]: a section is not accepted\n");
	expect_refusal("--config @", "port = 1\nport = 2\n", 64, "@:2: port is given a second time\n");
	expect_refusal("--config @", "port = 1\n  threads = 0\n", 64,
		       "@:2: threads: \"0\" is not a whole number from 1 to 256 threads\n");
	expect_refusal("--config @", "help = yes\n", 64, "@:1: help: it belongs on the command line\n");
	expect_refusal("--config @", "port =\n", 64, "@:1: port: \"\" is not a whole number from -1 to 65535\n");
	expect_refusal("--config @", "extended = foo\n", 64, "@:1: extended: Illegal suboption \"foo\"\n");
}

static void a_line_may_be_of_any_length(void **state)
{
	struct loaded loaded;
	char text[6000] = "  port = 7\n  listen\t= ", *end = text + strlen(text);

	(void)state;
	memset(end, 'p', 5000);
	strcpy(end + 5000, " ; a comment\nthreads = 0\n");
	expect_refusal("--config @", text, 64, "@:3: threads: \"0\" is not a whole number from 1 to 256 threads\n");
	strcpy(end + 5000, "\nuser = nobody\n");
	load(&loaded, "--config @", text);
	assert_string_equal(loaded.err, "");
	assert_int_equal(strlen(loaded.conf.listen), 5000);
	assert_int_equal(loaded.conf.port, 7);
	assert_string_equal(loaded.conf.user, "nobody");
	unload(&loaded);
	memcpy(text, "  port = 7\n  listed", 19);
	expect_refusal("--config @", text, 1, "@:2: there is no option \"listed\"\n");
	memset(end - 3, 'p', 4);
	expect_refusal("--config @", text, 64, "@:2: the line is not \"name = value\"\n");
}

/* A UDP port that is given alone is the TCP port too. */
static void udp_port_alone(void **state)
{
	const struct {
		const char *options;
		int port, udp_port;
	} cases[] = {
		{ "-U 5000", 5000, 5000 },     { "-U -1", -1, -1 },     { "-U 0", 11211, 0 },
		{ "-U 5000 -p 0", 0, 5000 },   { "-p -1 -U 5", -1, 5 }, { "-U -1 -p 11211", 11211, -1 },
		{ "-U -1 -p 5000", 5000, -1 }, { "-p 5000", 5000, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct loaded loaded;

		load(&loaded, cases[i].options, NULL);
		assert_int_equal(loaded.rc, FS_OK);
		assert_int_equal(loaded.conf.port, cases[i].port);
		assert_int_equal(loaded.conf.udp_port, cases[i].udp_port);
		unload(&loaded);
	}
	expect_refusal("-U -2", NULL, 64, "-U/--udp-port: \"-2\" is not a whole number from -1 to 65535\n");
}

static void versions_compare_by_their_numbers(void **state)
{
	const struct {
		const char *version;
		bool from_40;
	} cases[] = {
		{ "1.6.18", false },    { "1.6.39", false }, { "1.6.40", true }, { "1.6.45", true },
		{ "1.6.100", true },    { "1.5.99", false }, { "1.10.0", true }, { "2.0.0", true },
		{ "0.9.99", false },    { "1.6", false },    { "text", false },  { "-1.6.40", false },
		{ "1.6.40-rc1", true },
	};
	struct conf conf;
	char why[256];

	(void)state;
	conf_init(&conf);
	assert_true(conf_compat_from(&conf, 45) && !conf_compat_from(&conf, 46));
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(conf_set(&conf, "compat-version", cases[i].version, why, sizeof(why)), FS_OK);
		assert_int_equal(conf_compat_from(&conf, 40), cases[i].from_40);
	}
	conf_free(&conf);
}

static void defaults_are_memcacheds(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "", NULL);
	assert_int_equal(loaded.rc, FS_OK);
	assert_int_equal(loaded.conf.port, 11211);
	assert_int_equal(loaded.conf.udp_port, 0);
	assert_int_equal(loaded.conf.threads, 4);
	assert_int_equal(loaded.conf.memory_limit_bytes, 64 << 20);
	assert_int_equal(loaded.conf.max_item_size_bytes, 1 << 20);
	assert_int_equal(loaded.conf.conn_limit, 1024);
	assert_int_equal(loaded.conf.max_reqs_per_event, 20);
	assert_int_equal(loaded.conf.listen_backlog, 1024);
	assert_int_equal(loaded.conf.unix_mask, 0700);
	assert_int_equal(loaded.conf.verbose, 0);
	assert_false(loaded.conf.disable_evictions);
	assert_false(loaded.conf.disable_cas);
	assert_false(loaded.conf.daemonize);
	assert_null(loaded.conf.listen);
	assert_null(loaded.conf.user);
	assert_null(loaded.conf.notes);
	unload(&loaded);
}

static void our_defaults(void **state)
{
	struct conf conf;

	(void)state;
	conf_init(&conf);
	assert_null(conf.flash_path);
	assert_int_equal(conf.flash_size_bytes, 0);
	assert_int_equal(conf.segment_size_bytes, 0);
	assert_int_equal(conf.flash_object_size_bytes, 400);
	assert_int_equal(conf.flashiness_threshold, 1);
	assert_int_equal(conf.flashiness_horizon_us, 0);
	assert_int_equal(conf.training_window_us, 86400000000);
	assert_int_equal(conf.flash_write_limit, 0);
	assert_int_equal(conf.flash_read_timeout_us, 1000000);
	assert_false(conf.enable_move);
	assert_int_equal(conf.move_rate, 100 << 20);
	assert_int_equal(conf.restart_max_downtime_us, 60000000);
	assert_int_equal(conf.journal, CONF_JOURNAL_OFF);
	assert_null(conf.state_dir);
	assert_int_equal(conf.app_delimiter, ':');
	assert_true(conf.hot_fraction > 0.69 && conf.hot_fraction < 0.71);
	assert_int_equal(conf.promote, CONF_PROMOTE_OFF);
	assert_true(conf.promote_share <= 0); /* auto */
	assert_true(conf.promote_miss_cost > 49 && conf.promote_miss_cost < 51);
	assert_int_equal(conf.promote_width, 256);
	assert_true(conf.promote_threshold > 0.18 && conf.promote_threshold < 0.2);
	assert_int_equal(conf.filter_bits, CONF_AUTO);
	assert_int_equal(conf.filter, CONF_FILTER_BLOOM);
	assert_int_equal(conf.filter_units, 1);
	assert_int_equal(conf.tag_bits, CONF_AUTO);
	assert_int_equal(conf.hash_functions, 16);
	assert_int_equal(conf.placement, CONF_PLACEMENT_SWEEP);
	assert_int_equal(conf.clock_mode, CONF_CLOCK_LRU);
	assert_int_equal(conf.label_mode, CONF_LABEL_FULL);
	assert_int_equal(conf.admission, CONF_ADMISSION_SVM);
	assert_int_equal(conf.reinsertion, CONF_REINSERTION_READ);
	assert_int_equal(conf.direct_io, CONF_DIRECT_IO_AUTO);
	assert_int_equal(conf.flash_read_unit, CONF_READ_BLOCK);
	conf_free(&conf);
}

static void every_type_is_read_from_the_command_line(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded,
	     "-p 0 -t8 -m 128 -I 2m -c 10 -a 770 -d -u nobody -C -M -R 5 -b 7 -P /p -l 127.0.0.1,::1 -l [::]:12 "
	     "--flash-path /f --flash-size 2g --segment-size=64k",
	     NULL);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	assert_int_equal(loaded.conf.port, 0);
	assert_int_equal(loaded.conf.threads, 8);
	assert_int_equal(loaded.conf.memory_limit_bytes, 128 << 20);
	assert_int_equal(loaded.conf.max_item_size_bytes, 2 << 20);
	assert_int_equal(loaded.conf.unix_mask, 0770);
	assert_true(loaded.conf.daemonize && loaded.conf.disable_cas && loaded.conf.disable_evictions);
	assert_string_equal(loaded.conf.user, "nobody");
	assert_string_equal(loaded.conf.listen, "127.0.0.1,::1,[::]:12");
	assert_string_equal(loaded.conf.flash_path, "/f");
	assert_true(loaded.conf.flash_size_bytes == 2ull << 30);
	assert_int_equal(loaded.conf.segment_size_bytes, 65536);
	unload(&loaded);

	load(&loaded,
	     "--flashiness-horizon 0 --training-window 3s --flash-write-limit 20MB/s --hot-fraction 0.5 --app-delimiter / "
	     "--filter-bits auto --tag-bits 2 --admission read-once --placement PAPER --clock-mode=mfu --direct-io off "
	     "--flash-read-unit page",
	     NULL);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.conf.flashiness_horizon_us, 0);
	assert_int_equal(loaded.conf.training_window_us, 3000000);
	assert_int_equal(loaded.conf.flash_write_limit, 20 << 20);
	assert_true(loaded.conf.hot_fraction > 0.49 && loaded.conf.hot_fraction < 0.51);
	assert_int_equal(loaded.conf.app_delimiter, '/');
	assert_int_equal(loaded.conf.filter_bits, CONF_AUTO);
	assert_int_equal(loaded.conf.tag_bits, 2);
	assert_int_equal(loaded.conf.admission, CONF_ADMISSION_READ_ONCE);
	assert_int_equal(loaded.conf.placement, CONF_PLACEMENT_PAPER);
	assert_int_equal(loaded.conf.clock_mode, CONF_CLOCK_MFU);
	assert_int_equal(loaded.conf.direct_io, CONF_DIRECT_IO_OFF);
	assert_int_equal(loaded.conf.flash_read_unit, CONF_READ_PAGE);
	unload(&loaded);
}

static void the_bounds_of_a_port_are_ports(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "-p 65535 -U 65535", NULL);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	assert_int_equal(loaded.conf.port, 65535);
	assert_int_equal(loaded.conf.udp_port, 65535);
	unload(&loaded);
	load(&loaded, "-p -1 -U -1", NULL);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	assert_int_equal(loaded.conf.port, -1);
	assert_int_equal(loaded.conf.udp_port, -1);
	unload(&loaded);
}

static void the_file_takes_the_same_names(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "--config @",
	     "# a comment\n; another\n\nthreads=3\n  port = 0 ; the rest of the line is a comment\n"
	     "daemon = yes\nverbose = 2\nlisten = 127.0.0.1\nlisten = ::1\napp-delimiter = \";\"\n"
	     "extended = ext_path=/f:64m\n");
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	assert_int_equal(loaded.conf.threads, 3);
	assert_int_equal(loaded.conf.port, 0);
	assert_true(loaded.conf.daemonize);
	assert_int_equal(loaded.conf.verbose, 2);
	assert_string_equal(loaded.conf.listen, "127.0.0.1,::1");
	assert_int_equal(loaded.conf.app_delimiter, ';');
	assert_string_equal(loaded.conf.flash_path, "/f");
	assert_int_equal(loaded.conf.flash_size_bytes, 64 << 20);
	unload(&loaded);
}

static void a_hash_behind_a_value_is_warned_of(void **state)
{
	static const struct {
		const char *line, *user;
		bool warned;
	} lines[] = {
		{ "user = a # b\n", "a # b", true }, { "user = a\t#b\n", "a\t#b", true },
		{ "user = a#b\n", "a#b", false },    { "user = \"a # b\"\n", "a # b", false },
		{ "user = a ; # b\n", "a", false },  { "# user = c # d\nuser = a\n", "a", false },
		{ "user = #a\n", "#a", false },
	};
	struct loaded loaded;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		load(&loaded, "--config @", lines[i].line);
		assert_string_equal(loaded.err, "");
		assert_string_equal(loaded.conf.user, lines[i].user);
		assert_int_equal(loaded.conf.notes != NULL, lines[i].warned);
		if (lines[i].warned)
			assert_non_null(strstr(loaded.conf.notes->text, ":1: user: \"#\" and the rest are part"));
		unload(&loaded);
	}
}

static void quotes_protect_what_is_no_comment(void **state)
{
	static const struct {
		const char *line, *user;
	} lines[] = {
		{ "user = \"a ;b\"\n", "a ;b" },     { "user = \"a ;b\" ; c \"d\n", "a ;b" },
		{ "user = \"a\" ; c \"d\"\n", "a" }, { "user = \"a\" b \"c\"\n", "a\" b \"c" },
		{ "user = \" a\t\" \n", " a\t" },    { "user = a\"b ;c\"\n", "a\"b" },
		{ "user = \"a ;b\n", "\"a" },        { "user = \"\"\"\n", "\"" },
	};
	struct loaded loaded;

	(void)state;
	expect_refusal("--config @", "[\"x\"]\n", 64, "@:1: the line is not \"name = value\"\n");
	expect_refusal("--config @", "user \"x\"\n", 64, "@:1: the line is not \"name = value\"\n");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		load(&loaded, "--config @", lines[i].line);
		assert_string_equal(loaded.err, "");
		assert_string_equal(loaded.conf.user, lines[i].user);
		unload(&loaded);
	}
}

static void the_command_line_overrides_the_file(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "-t 5 --config @ -l ::1 -v --daemon=no",
	     "threads = 3\nport = 7\nlisten = 127.0.0.1\nverbose = 3\ndaemon = on\nuser = nobody\n");
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.conf.threads, 5);
	assert_int_equal(loaded.conf.port, 7);
	assert_string_equal(loaded.conf.listen, "::1");
	assert_int_equal(loaded.conf.verbose, 1);
	assert_false(loaded.conf.daemonize);
	assert_string_equal(loaded.conf.user, "nobody");
	unload(&loaded);
}

static void verbosity_counts_and_sets_the_log_level(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "-v", NULL);
	assert_int_equal(log_level(), LOG_LEVEL_INFO);
	unload(&loaded);
	load(&loaded, "-vv", NULL);
	assert_int_equal(loaded.conf.verbose, 2);
	assert_int_equal(log_level(), LOG_LEVEL_DEBUG);
	unload(&loaded);
	load(&loaded, "", NULL);
	assert_int_equal(log_level(), LOG_LEVEL_NOTICE);
	unload(&loaded);
}

static void help_version_and_sample_end_the_start(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "-V", NULL);
	assert_int_equal(loaded.rc, CONF_EXIT);
	assert_int_equal(loaded.conf.exit_code, 0);
	assert_string_equal(loaded.out, "memcached 1.6.45\n");
	assert_string_equal(loaded.err, "flashield " FS_VERSION "\n");
	unload(&loaded);
	conf_set_build("commit 1234\n");
	load(&loaded, "-V", NULL);
	assert_string_equal(loaded.err, "flashield " FS_VERSION "\ncommit 1234\n");
	unload(&loaded);
	conf_set_build(NULL);
	load(&loaded, "-t 0 -V --compat-version 1.5.22 --nonsense", NULL); /* tells the version that was asked for */
	assert_string_equal(loaded.out, "memcached 1.5.22\n");
	unload(&loaded);
	load(&loaded, "-i", NULL);
	assert_int_equal(loaded.conf.exit_code, 0);
	assert_non_null(strstr(loaded.out, "Redistributions of source code must retain"));
	unload(&loaded);
	load(&loaded, "-h -t 0", NULL); /* help comes before what is wrong */
	assert_int_equal(loaded.conf.exit_code, 0);
	assert_non_null(strstr(loaded.out, "--flash-path=FILE"));
	assert_non_null(strstr(loaded.out, "-m, --memory-limit=SIZE"));
	unload(&loaded);
	load(&loaded, "--print-sample-config", NULL);
	assert_int_equal(loaded.conf.exit_code, 0);
	assert_non_null(strstr(loaded.out, "\n#threads = 4\n"));
	unload(&loaded);
}

static void print_value(void *context, const struct conf_option *option, const char *value)
{
	fprintf(context, "%s=%s\n", option->name, value);
}

/* All options' values as text, to be freed. */
static char *described_text(const struct conf *conf)
{
	char *text;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	conf_describe(conf, print_value, out);
	fclose(out);
	return text;
}

/* Takes the sample file's "#name = value" lines as an operator would who removes each "#". */
static void the_sample_file_loads_and_changes_nothing(void **state)
{
	struct loaded sample, loaded;
	struct conf conf;
	char *line, *text, *got, *expected;

	(void)state;
	load(&sample, "--print-sample-config", NULL);
	for (line = sample.out; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (line[0] == '#' && line[1] >= 'a' && line[1] <= 'z' &&
		    strncmp(line + strcspn(line, "=\n"), "= ", 2) == 0)
			line[0] = ' ';
	}
	text = strdup(sample.out);
	load(&loaded, "--config @", text);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	conf_init(&conf);
	got = described_text(&loaded.conf);
	expected = described_text(&conf);
	assert_string_equal(got, expected);
	free(got);
	free(expected);
	free(text);
	conf_free(&conf);
	unload(&loaded);
	unload(&sample);
}

struct described {
	int options;
	bool auto_seen, memory_seen, empty_seen;
};

static void describe_one(void *context, const struct conf_option *option, const char *value)
{
	struct described *described = context;

	described->options++;
	if (strcmp(option->name, "segment-size") == 0)
		described->auto_seen = strcmp(value, "auto") == 0;
	if (strcmp(option->name, "memory-limit") == 0)
		described->memory_seen = strcmp(value, "64m") == 0;
	if (strcmp(option->name, "flash-path") == 0)
		described->empty_seen = strcmp(value, "") == 0;
	assert_true(option->text && *option->text);
}

static void set_again(void *context, const struct conf_option *option, const char *value)
{
	char why[256];

	if (strcmp(option->name, "memory-limit") == 0)
		assert_int_equal(conf_set(context, option->name, value, why, sizeof(why)), FS_OK);
}

static void describe_tells_what_set_takes(void **state)
{
	struct described described = { 0 };
	struct conf conf;
	char why[256];
	uint64_t memory;

	(void)state;
	conf_init(&conf);
	conf_describe(&conf, describe_one, &described);
	assert_true(described.options > 30);
	assert_true(described.auto_seen && described.memory_seen && described.empty_seen);
	assert_int_equal(conf_set(&conf, "nothing", "1", why, sizeof(why)), FS_ENOTFOUND);
	assert_string_equal(why, "there is no option \"nothing\"");
	assert_int_equal(conf_set(&conf, "threads", "x", why, sizeof(why)), FS_EINVAL);
	assert_string_equal(why, "\"x\" is not a whole number from 1 to 256 threads");
	assert_int_equal(conf.threads, 4);
	assert_int_equal(conf_set(&conf, "threads", "9", why, sizeof(why)), FS_OK);
	assert_int_equal(conf.threads, 9);
	assert_int_equal(conf_set(&conf, "memory-limit", "6.266m", why, sizeof(why)), FS_OK);
	memory = conf.memory_limit_bytes;
	assert_int_equal(memory % 1024, 393);
	conf_describe(&conf, set_again, &conf);
	assert_int_equal(conf.memory_limit_bytes, memory);
	conf_free(&conf);
}

/* An error line can be followed: both bounds that it names are taken, in the units that it names. */
static void check_bounds(void *context, const struct conf_option *option, const char *value)
{
	struct conf *conf = context;
	char why[512], low[64] = "", high[64] = "";
	const char *range;

	(void)value;
	if (option->type == CONF_TYPE_STRING || option->type == CONF_TYPE_FLAG || option->type == CONF_TYPE_CHAR ||
	    option->type == CONF_TYPE_ENUM)
		return;
	assert_int_equal(conf_set(conf, option->name, "banana", why, sizeof(why)), FS_EINVAL);
	range = strstr(why, " from ");
	assert_non_null(range);
	assert_int_equal(sscanf(range, " from %63s to %63[^, ]", low, high), 2);
	assert_int_equal(conf_set(conf, option->name, low, why, sizeof(why)), FS_OK);
	assert_int_equal(conf_set(conf, option->name, high, why, sizeof(why)), FS_OK);
}

static void the_bounds_of_an_error_line_are_taken(void **state)
{
	struct conf conf, other;

	(void)state;
	conf_init(&conf);
	conf_init(&other);
	conf_describe(&conf, check_bounds, &other);
	conf_free(&other);
	conf_free(&conf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bounds_of_an_error_line_are_taken),
		cmocka_unit_test(a_bad_value_is_named_with_what_is_accepted),
		cmocka_unit_test(a_long_or_odd_value_is_cut_and_escaped),
		cmocka_unit_test(unknown_options_end_as_in_memcached),
		cmocka_unit_test(mistakes_in_the_file_name_file_and_line),
		cmocka_unit_test(a_line_may_be_of_any_length),
		cmocka_unit_test(defaults_are_memcacheds),
		cmocka_unit_test(udp_port_alone),
		cmocka_unit_test(versions_compare_by_their_numbers),
		cmocka_unit_test(our_defaults),
		cmocka_unit_test(every_type_is_read_from_the_command_line),
		cmocka_unit_test(the_bounds_of_a_port_are_ports),
		cmocka_unit_test(the_file_takes_the_same_names),
		cmocka_unit_test(a_hash_behind_a_value_is_warned_of),
		cmocka_unit_test(quotes_protect_what_is_no_comment),
		cmocka_unit_test(the_command_line_overrides_the_file),
		cmocka_unit_test(verbosity_counts_and_sets_the_log_level),
		cmocka_unit_test(help_version_and_sample_end_the_start),
		cmocka_unit_test(the_sample_file_loads_and_changes_nothing),
		cmocka_unit_test(describe_tells_what_set_takes),
	};

	return cmocka_run_group_tests_name("conf", tests, NULL, NULL);
}

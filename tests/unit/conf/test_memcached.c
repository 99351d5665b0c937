/* SPDX-License-Identifier: BSD-3-Clause */
/* memcached's flags, its checks between options, and its file of flags. */
#include <string.h>

#include "tests/unit/conf/conf_test.h"

#define SIZES_OF_M "1m to 1p, in MiB or with a suffix k m g t p\n"
#define HALF "Cannot set item size limit higher than 1/2 of memory max.\n"
#define NO_ASCII "ERROR: You cannot allow the ASCII protocol while using SASL.\n"
#define NO_BINARY "ERROR: You cannot allow the BINARY protocol while using ascii authentication tokens.\n"

struct refused {
	const char *words;
	int exit_code;
	const char *text;
};

static void all_are_refused(const struct refused *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		expect_refusal(cases[i].words, NULL, cases[i].exit_code, cases[i].text);
}

static void values_are_refused_in_memcacheds_words(void **state)
{
	static const struct refused cases[] = {
		{ "-t 0", 1, "Number of threads must be greater than 0\n" },
		{ "-t x", 1, "Number of threads must be greater than 0\n" },
		{ "--threads=-1", 1, "Number of threads must be greater than 0\n" },
		{ "-c 0", 1, "Maximum connections must be greater than 0\n" },
		{ "-R 0", 1, "Number of requests per event must be greater than 0\n" },
		{ "-N 0", 1, "Maximum number of NAPI IDs must be greater than 0\n" },
		{ "-f 1", 1, "Factor must be greater than 1\n" },
		{ "-n 0", 1, "Chunk size must be greater than 0\n" },
		{ "--detail-delimiter=", 1, "No delimiter specified\n" },
		{ "-I 1023", 64, "Item max size cannot be less than 1024 bytes.\n" },
		{ "-I x", 64, "Item max size cannot be less than 1024 bytes.\n" },
		{ "-I 1025m -m 4096", 64, "Cannot set item size limit higher than a gigabyte.\n" },
		{ "-m 0", 64, "-m/--memory-limit: \"0\" is not a size from " SIZES_OF_M },
		{ "-m banana", 64, "-m/--memory-limit: \"banana\" is not a size from " SIZES_OF_M },
		{ "-m 4k", 64, "-m/--memory-limit: \"4k\" is not a size from " SIZES_OF_M },
		{ "-m 64k", 64, "-m/--memory-limit: \"64k\" is not a size from " SIZES_OF_M },
		{ "-m x100", 64, "-m/--memory-limit: \"x100\" is not a size from " SIZES_OF_M },
		{ "-c 100000000", 64,
		  "-c/--conn-limit: \"100000000\" is not a whole number from 1 to 10000000 connections\n" },
		{ "-a 078", 64, "-a/--unix-mask: \"078\" is not an octal number from 0 to 777\n" },
		{ "-o slab_chunk_max=0", 1, "slab_chunk_max: \"0\" is not a whole number from 1 to 2147483647\n" },
		{ "-o slab_chunk_max=-1", 1, "slab_chunk_max: \"-1\" is not a whole number from 1 to 2147483647\n" },
		{ "-B x", 64, "Invalid value for binding protocol: x\n -- should be one of auto, binary, or ascii\n" },
	};

	(void)state;
	all_are_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

static void what_does_not_go_together_is_refused(void **state)
{
	static const struct refused cases[] = {
		{ "-m 1", 64, HALF },
		{ "-I 33m", 64, HALF },
		{ "-S -B ascii", 64, NO_ASCII },
		{ "-B auto -S", 64, NO_ASCII },
		{ "-S -U 1", 64, "ERROR: Cannot enable UDP while using binary SASL authentication.\n" },
		{ "-Y f -B binary", 64, NO_BINARY },
		{ "-Y f -B auto", 64, NO_BINARY },
		{ "-N 5", 64, "Number of napi_ids(5) cannot be greater than number of threads(4)\n" },
		{ "-o hot_lru_pct=50", 64, "hot_lru_pct + warm_lru_pct cannot be more than 80% combined\n" },
		{ "-o no_lru_maintainer,temporary_ttl=5", 64, "temporary_ttl requires lru_maintainer to be enabled\n" },
		{ "-o slab_chunk_max=1000", 64,
		  "-I (item_size_max: 1048576) must be evenly divisible by slab_chunk_max (bytes: 1024000)\n" },
		{ "--compat-version 1.6.18 -o slab_chunk_max=1000", 64,
		  "-I (item_size_max: 1048576) must be evenly divisible by slab_chunk_max (bytes: 1000)\n" },
		{ "-o slab_chunk_max=2097152", 64,
		  "slab_chunk_max (bytes: 2097152) cannot be larger than -I (item_size_max 1048576)\n" },
		{ "-o slab_automove_window=1801", 1, "slab_automove_window must be > 2 and < 1800\n" },
		{ "-o slab_sizes=47-100", 64, "slab size 47 is out of valid range\n" },
		{ "-o slab_sizes=200-100", 64,
		  "slab size 100 cannot be lower than or equal to a previous class size\n" },
		{ "-o slab_sizes=100-100", 64,
		  "slab size 100 cannot be lower than or equal to a previous class size\n" },
		{ "-o slab_sizes=96-104", 64, "slab size 104 must be at least 8 bytes larger than previous class\n" },
		{ "--flash-path=f --flash-size=1m --segment-size=512k", 64,
		  "--segment-size: 512k is more than a quarter of --flash-size, which is 1m\n" },
		{ "--flash-path=f --model-pinned", 64,
		  "--model-pinned: it keeps the model of --model, which is not given\n" },
	};

	(void)state;
	all_are_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

struct described {
	const char *name;
	char value[64];
};

static void describe(void *context, const struct conf_option *option, const char *value)
{
	struct described *described = context;

	if (strcmp(option->name, described->name) == 0)
		snprintf(described->value, sizeof(described->value), "%s", value);
}

/* A tab stands for blanks, as one separates the words here. */
static void numbers_are_read_as_atoi_does(void **state)
{
	static const struct {
		const char *words, *name, *value, *warning;
	} cases[] = {
		{ "-m\t8192", "memory-limit", "8g", NULL },
		{ "--memory-limit=\t\v64\t", "memory-limit", "64m", NULL },
		{ "-m +64", "memory-limit", "64m", NULL },
		{ "-m 512Mi", "memory-limit", "512m", "-m/--memory-limit: \"512Mi\" is read as 512M" },
		{ "-m 100x", "memory-limit", "100m", "-m/--memory-limit: \"100x\" is read as 100" },
		{ "-I\t5m", "max-item-size", "5m", NULL },
		{ "-I 5242880bytes", "max-item-size", "5m", "-I/--max-item-size: \"5242880bytes\" is read as 5242880" },
		{ "-c 16384.0", "conn-limit", "16384", "-c/--conn-limit: \"16384.0\" is read as 16384" },
		{ "-p -1x", "port", "-1", "-p/--port: \"-1x\" is read as -1" },
		{ "-a\t0777,", "unix-mask", "777", "-a/--unix-mask: \"\\x090777,\" is read as 0777" },
		{ "-f\t1.5x", "slab-growth-factor", "1.5", "-f/--slab-growth-factor: \"\\x091.5x\" is read as 1.5" },
		{ "-t 300", "threads", "256", "-t/--threads: 300 are too many: there will be 256" },
		{ "-D \t:", "detail-delimiter", ":", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct loaded loaded;
		struct described described = { .name = cases[i].name };

		load(&loaded, cases[i].words, NULL);
		assert_string_equal(loaded.err, "");
		assert_int_equal(loaded.rc, FS_OK);
		conf_describe(&loaded.conf, describe, &described);
		assert_string_equal(described.value, cases[i].value);
		if (cases[i].warning) {
			assert_non_null(loaded.conf.notes);
			assert_string_equal(loaded.conf.notes->text, cases[i].warning);
		} else {
			assert_null(loaded.conf.notes);
		}
		unload(&loaded);
	}
}

static void a_segment_may_be_a_quarter_of_the_flash(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "--flash-path=f --flash-size=64m --segment-size=16m", NULL);
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	unload(&loaded);
}

static void authentication_chooses_the_protocol(void **state)
{
	static const struct {
		const char *words;
		int protocol;
	} cases[] = {
		{ "-m 64", CONF_PROTOCOL_AUTO },    { "-B ascii", CONF_PROTOCOL_ASCII },
		{ "-S", CONF_PROTOCOL_BINARY },     { "-S -B binary", CONF_PROTOCOL_BINARY },
		{ "-Y file", CONF_PROTOCOL_ASCII }, { "-Y file -B ascii", CONF_PROTOCOL_ASCII },
	};
	struct loaded loaded;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		load(&loaded, cases[i].words, NULL);
		assert_string_equal(loaded.err, "");
		assert_int_equal(loaded.rc, FS_OK);
		assert_int_equal(loaded.conf.binding_protocol, cases[i].protocol);
		unload(&loaded);
	}
}

static void flags_may_be_joined(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "-kLrAFXWCM -vvv -Dab -t2 --verbose", NULL);
	assert_string_equal(loaded.err, "");
	assert_true(loaded.conf.lock_memory && loaded.conf.large_pages && loaded.conf.coredumps);
	assert_true(loaded.conf.enable_shutdown && loaded.conf.disable_flush_all && loaded.conf.disable_dumping);
	assert_true(loaded.conf.disable_watch && loaded.conf.disable_cas && loaded.conf.disable_evictions);
	assert_int_equal(loaded.conf.verbose, 4);
	assert_int_equal(loaded.conf.detail_delimiter, 'a');
	assert_true(loaded.conf.detail_enabled);
	assert_int_equal(loaded.conf.threads, 2);
	unload(&loaded);
}

static void a_small_item_size_needs_no_chunk_size(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "-I 1k -m 1", NULL);
	assert_string_equal(loaded.err, "");
	assert_true(loaded.conf.max_item_size_bytes == 1024);
	unload(&loaded);
}

static void defaults_are_those_of_the_release(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "", NULL);
	assert_int_equal(loaded.conf.slab_automove_window, 10);
	assert_int_equal(loaded.conf.slab_chunk_max, 524288);
	unload(&loaded);
	load(&loaded, "-o slab_automove_window=1800,no_chunked_items", NULL);
	assert_int_equal(loaded.conf.slab_automove_window, 1800);
	assert_int_equal(loaded.conf.slab_chunk_max, 1048576);
	unload(&loaded);
	load(&loaded, "-o slab_automove_window=1801 --compat-version 1.6.44", NULL);
	assert_int_equal(loaded.conf.slab_automove_window, 1801);
	unload(&loaded);
	load(&loaded, "-o slab_automove_window=7,slab_chunk_max=256", NULL);
	assert_int_equal(loaded.conf.slab_automove_window, 7);
	assert_int_equal(loaded.conf.slab_chunk_max, 262144);
	unload(&loaded);
	load(&loaded, "-o slab_chunk_max=262144", NULL); /* bytes, as 1.6.18 took them */
	assert_int_equal(loaded.conf.slab_chunk_max, 262144);
	unload(&loaded);
	load(&loaded, "-o slab_chunk_max=256 --compat-version 1.6.18", NULL);
	assert_int_equal(loaded.conf.slab_automove_window, 30);
	assert_int_equal(loaded.conf.slab_chunk_max, 256);
	unload(&loaded);
}

static void extstores_pages_are_worked_out(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "-o ext_page_size=8,ext_path=/f:128m,ext_drop_under=3", NULL); /* 3 is not asked, as there */
	assert_true(loaded.conf.ext_compact_under == 1 && loaded.conf.ext_drop_under == 1);
	unload(&loaded);
	load(&loaded, "-o ext_page_size=8,ext_path=/f:4000m", NULL);
	assert_true(loaded.conf.ext_compact_under == 5 && loaded.conf.ext_drop_under == 5);
	unload(&loaded);
	load(&loaded, "-o ext_page_size=8,ext_path=/f:128m --compat-version 1.6.37", NULL);
	assert_true(loaded.conf.ext_compact_under == 4 && loaded.conf.ext_drop_under == 4);
	unload(&loaded);
	load(&loaded, "-o ext_page_size=8,ext_path=/f:128m,ext_compact_under=5,ext_drop_under=3", NULL);
	assert_true(loaded.conf.ext_compact_under == 5 && loaded.conf.ext_drop_under == 3);
	unload(&loaded);
}

/* --- a file of flags ------------------------------------------------------------------------- */

static void mistakes_in_a_file_of_flags_are_told_with_the_line(void **state)
{
	(void)state;
	expect_refusal("--config @", "-m 64\n\n-t 0\n", 1, "@:3: Number of threads must be greater than 0\n");
	expect_refusal("--config @", "-m 64\n--nonsense\n", 1,
		       "@:2: flashield: unrecognized option '--nonsense'\nIllegal argument \"?\"\n");
	expect_refusal("--config @", "-m 64\n-o nonsense\n", 1, "@:2: Illegal suboption \"nonsense\"\n");
	expect_refusal("--config @", "-m 64\nport = 5\n", 64, "@:2: \"port\" is not a flag\n");
	expect_refusal("--config @", "-m 64\n-P 'x\n", 64,
		       "@:2: a quote is not closed, or there are more than 63 words\n");
	expect_refusal("--config @", "-m 64\n-V\n", 64, "@:2: --version belongs on the command line\n");
	expect_refusal("--config @", "-m 64\n--config /x\n", 64, "@:2: --config belongs on the command line\n");
}

static void debians_memcached_conf_is_read(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "--config @ -c 7",
	     "# memcached default config file\n# 2003\n\n# Run as a daemon\n-d\n\nlogfile /var/log/memcached.log\n# -v\n"
	     "  -m 96   # megabytes\n-p 11211\r\n-u memcache\n-l 127.0.0.1\n-l ::1\n-c 1000\n-vv\n"
	     "-P \"/run/a b\"\n-o modern,idle_timeout=5\n-t 2 -b 9\n");
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.rc, FS_OK);
	assert_false(loaded.conf.daemonize);
	assert_true(loaded.conf.memory_limit_bytes == 96 << 20);
	assert_string_equal(loaded.conf.user, "memcache");
	assert_string_equal(loaded.conf.listen, "127.0.0.1,::1");
	assert_string_equal(loaded.conf.pidfile, "/run/a b");
	assert_int_equal(loaded.conf.conn_limit, 7);
	assert_int_equal(loaded.conf.verbose, 2);
	assert_int_equal(loaded.conf.idle_timeout_seconds, 5);
	assert_int_equal(loaded.conf.threads, 2);
	assert_int_equal(loaded.conf.listen_backlog, 9);
	unload(&loaded);
}

static void a_file_may_begin_with_its_log_file(void **state)
{
	struct loaded loaded;

	(void)state;
	load(&loaded, "--config @", "logfile /var/log/x\n-t 3\n");
	assert_string_equal(loaded.err, "");
	assert_int_equal(loaded.conf.threads, 3);
	unload(&loaded);
	expect_refusal("--config @", "logfile = x\n", 1, "@:1: there is no option \"logfile\"\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_refused_in_memcacheds_words),
		cmocka_unit_test(what_does_not_go_together_is_refused),
		cmocka_unit_test(numbers_are_read_as_atoi_does),
		cmocka_unit_test(a_segment_may_be_a_quarter_of_the_flash),
		cmocka_unit_test(authentication_chooses_the_protocol),
		cmocka_unit_test(flags_may_be_joined),
		cmocka_unit_test(a_small_item_size_needs_no_chunk_size),
		cmocka_unit_test(defaults_are_those_of_the_release),
		cmocka_unit_test(extstores_pages_are_worked_out),
		cmocka_unit_test(mistakes_in_a_file_of_flags_are_told_with_the_line),
		cmocka_unit_test(debians_memcached_conf_is_read),
		cmocka_unit_test(a_file_may_begin_with_its_log_file),
	};

	return cmocka_run_group_tests_name("memcached", tests, NULL, NULL);
}

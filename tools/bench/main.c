/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flashield-bench-worker: the parts of flashield-bench that must be fast or that need the engine.
 *
 *   flashield-bench-worker COMMAND < {"name": value, ...}     a line of JSON; answers as in report.h
 *
 *   load       runs a load (load.h) to its end; SIGTERM ends it early, SIGUSR1 forgets what was counted
 *   raw        reads of a file without a cache (raw.h)
 *   store      threads on the store, placement: plans of segments, index: an index of one size, ablation: one of its
 *              kinds while the flash turns over
 *   version    prints the version
 *
 * Exit status: 0 done; 1 a wrong value; 2 anything else, with a line on standard error.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "conf/version.h"
#include "tools/bench/engine.h"
#include "tools/bench/load.h"
#include "tools/bench/raw.h"
#include "tools/bench/report.h"
#include "tools/common/args.h"

enum { EXIT_WRONG_VALUE = 1, EXIT_ELSE = 2 };

/* ---- a load ---------------------------------------------------------------------------------- */

static struct load *running; /* for the signals, which are let through only while it is there */

static void on_signal(int number)
{
	if (number == SIGTERM)
		load_stop(running);
	else
		load_forget(running);
}

static void signals(int how)
{
	const int numbers[] = { SIGTERM, SIGUSR1 };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	sigset_t set;

	sigemptyset(&set);
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		sigaddset(&set, numbers[i]);
		sigaction(numbers[i], &action, NULL);
	}
	pthread_sigmask(how, &set, NULL);
}

static const char *text_of(json_t *spec, const char *name)
{
	const char *text = json_string_value(json_object_get(spec, name));

	return text ? text : "";
}

static bool flag_of(json_t *spec, const char *name)
{
	return json_is_true(json_object_get(spec, name));
}

/* A number, or 0. */
static double real_of(json_t *spec, const char *name)
{
	return json_number_value(json_object_get(spec, name));
}

static uint64_t count_of(json_t *spec, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(spec, name));
}

/* The index of a word in a list that ends with NULL; the program ends if it is not there. */
static unsigned choice_of(json_t *spec, const char *name, const char *const *words)
{
	for (unsigned i = 0; words[i]; i++)
		if (strcmp(words[i], text_of(spec, name)) == 0)
			return i;
	arg_die("%s: \"%s\" is not known", name, text_of(spec, name));
}

static struct load_spec load_spec_of(json_t *spec)
{
	static const char *const kinds[] = { "set", "get", "mixed", "set_get", NULL };
	static const char *const orders[] = { "sequential", "uniform", "zipf", NULL };

	return (struct load_spec){
		.kind = choice_of(spec, "kind", kinds),
		.order = choice_of(spec, "order", orders),
		.first_key = count_of(spec, "first_key"),
		.keys = count_of(spec, "keys"),
		.key_bytes = (unsigned)count_of(spec, "key_bytes"),
		.value_bytes = (uint32_t)count_of(spec, "value_bytes"),
		.value_bytes_most = (uint32_t)count_of(spec, "value_bytes_most"),
		.set_share = real_of(spec, "set_share"),
		.zipf_exponent = real_of(spec, "zipf_exponent"),
		.connections = (unsigned)count_of(spec, "connections"),
		.pipeline = (unsigned)count_of(spec, "pipeline"),
		.keys_per_get = (unsigned)count_of(spec, "keys_per_get"),
		.operations = count_of(spec, "operations"),
		.seconds = real_of(spec, "seconds"),
		.warmup_share = real_of(spec, "warmup_share"),
		.rate = real_of(spec, "rate"),
		.timed_from_sending = flag_of(spec, "timed_from_sending"),
		.seed = count_of(spec, "seed"),
		.cpu = (int)json_integer_value(json_object_get(spec, "cpu")),
		.urgent = flag_of(spec, "urgent"),
		.silence_seconds = real_of(spec, "silence_seconds"),
		.expect_misses = flag_of(spec, "expect_misses"),
	};
}

static void report_load(const struct load_result *result)
{
	report_result(json_pack(
		"{s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:I, s:o, s:o, s:o}", "seconds", result->seconds,
		"operations", (json_int_t)result->operations, "gets", (json_int_t)result->gets, "hits",
		(json_int_t)result->hits, "sets", (json_int_t)result->sets, "stored", (json_int_t)result->stored,
		"wrong", (json_int_t)result->wrong, "errors", (json_int_t)result->errors, "first_error",
		result->first_error, "server_cpu_ns", (json_int_t)result->server_cpu_ns, "load_cpu_ns",
		(json_int_t)result->load_cpu_ns, "get_latency", report_hist(result->get_latency), "set_latency",
		report_hist(result->set_latency), "hit_latency", report_hist(result->hit_latency)));
}

/* The counts are reported even when the load broke off. */
static int run_load(json_t *spec)
{
	const struct load_spec load_spec = load_spec_of(spec);
	const struct load_server server = { (uint16_t)count_of(spec, "port"), (pid_t)count_of(spec, "pid") };
	struct load_result result;
	int rc;

	signals(SIG_BLOCK); /* until there is a load that they can tell */
	rc = load_start(&running, &load_spec, &server);
	if (rc != FS_OK)
		return rc;
	signals(SIG_UNBLOCK);
	report_progress("started");
	load_wait(running);
	signals(SIG_BLOCK);
	rc = load_join(running, &result);
	report_load(&result);
	load_result_fini(&result);
	return rc;
}

/* ---- the others ------------------------------------------------------------------------------ */

static int run_raw(json_t *spec)
{
	const struct raw_spec raw = {
		.path = text_of(spec, "path"),
		.bytes = count_of(spec, "bytes"),
		.unit = (uint32_t)count_of(spec, "unit"),
		.read_bytes = (uint32_t)count_of(spec, "read_bytes"),
		.depth = (unsigned)count_of(spec, "depth"),
		.reads = count_of(spec, "reads"),
		.cpu = (int)json_integer_value(json_object_get(spec, "cpu")),
		.seed = count_of(spec, "seed"),
	};
	struct raw_result result;
	int rc = raw_read(&raw, &result);

	if (rc == FS_OK)
		report_result(json_pack("{s:f, s:I, s:I, s:o}", "seconds", result.seconds, "reads",
					(json_int_t)result.reads, "cpu_ns", (json_int_t)result.cpu_ns, "latency",
					report_hist(result.latency)));
	raw_result_fini(&result);
	return rc;
}

static int run_store(json_t *spec)
{
	return engine_store((unsigned)count_of(spec, "rounds"), count_of(spec, "keys"), count_of(spec, "operations"));
}

static int run_placement(json_t *spec)
{
	return engine_placement((unsigned)count_of(spec, "rounds"), count_of(spec, "full_bytes"),
				count_of(spec, "steady_bytes"), count_of(spec, "table_bytes"));
}

static int run_index(json_t *spec)
{
	const struct index_shape shape = {
		.slots = count_of(spec, "slots"),
		.segments = (uint32_t)count_of(spec, "segments"),
		.filter_bits = (unsigned)count_of(spec, "filter_bits"),
		.small_pages = flag_of(spec, "small_pages"),
	};

	return engine_index(text_of(spec, "row"), &shape, (unsigned)count_of(spec, "rounds"),
			    count_of(spec, "operations"));
}

static int run_ablation(json_t *spec)
{
	const struct ablation_shape shape = {
		.slots = count_of(spec, "slots"),
		.segments = (uint32_t)count_of(spec, "segments"),
		.load = real_of(spec, "load"),
		.tag_bits = (unsigned)count_of(spec, "tag_bits"),
		.filter_bits = (unsigned)count_of(spec, "filter_bits"),
		.paper = flag_of(spec, "paper"),
	};

	return engine_ablation(text_of(spec, "row"), &shape, (unsigned)count_of(spec, "turns"),
			       (unsigned)count_of(spec, "rounds"), count_of(spec, "lookups"));
}

static int run_elastic(json_t *spec)
{
	const struct elastic_shape shape = {
		.levels = flag_of(spec, "levels"),
		.segments = (uint32_t)count_of(spec, "segments"),
		.keys_each = count_of(spec, "keys_each"),
		.tag_bits = (unsigned)count_of(spec, "tag_bits"),
		.bits = (unsigned)count_of(spec, "bits"),
		.units = (unsigned)count_of(spec, "units"),
		.exponent = real_of(spec, "exponent"),
		.learns = flag_of(spec, "learns"),
	};

	return engine_elastic(text_of(spec, "row"), &shape, count_of(spec, "gets"));
}

static int run_chain(json_t *spec)
{
	const struct chain_shape shape = {
		.columns = (uint32_t)count_of(spec, "columns"),
		.keys_each = real_of(spec, "keys_each"),
		.expected_each = real_of(spec, "expected_each"),
		.rows = flag_of(spec, "rows"),
	};

	return engine_chain(text_of(spec, "row"), &shape, count_of(spec, "searches"));
}

static const struct {
	const char *name;
	int (*run)(json_t *spec);
} commands[] = { { "load", run_load },           { "raw", run_raw },     { "store", run_store },
		 { "placement", run_placement }, { "index", run_index }, { "ablation", run_ablation },
		 { "elastic", run_elastic },     { "chain", run_chain } };

static int run_command(const char *name)
{
	json_error_t why;
	json_t *spec = json_loadf(stdin, JSON_DISABLE_EOF_CHECK, &why);
	int rc = FS_EINVAL;

	if (!spec)
		arg_die("standard input: %s", why.text);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(commands[i].name, name) == 0)
			rc = commands[i].run(spec);
	json_decref(spec);
	if (rc == FS_OK)
		return 0;
	fprintf(stderr, "flashield-bench: %s: %s\n", name, rc == FS_ESYS && errno ? strerror(errno) : fs_strerror(rc));
	return rc == FS_ECORRUPT ? EXIT_WRONG_VALUE : EXIT_ELSE;
}

int main(int argc, char **argv)
{
	if (argc != 2)
		arg_die("it serves flashield-bench, which gives it one command");
	if (strcmp(argv[1], "version") != 0)
		return run_command(argv[1]);
	puts(FS_VERSION);
	return 0;
}

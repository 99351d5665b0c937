/* SPDX-License-Identifier: BSD-3-Clause */
/* flashield-load: reads a file of flashield-dump part by part, and stores the objects, some at a time. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/session.h"
#include "tools/common/text.h"
#include "tools/load/options.h"

enum { BATCH_MOST = 64, BATCHES_PER_SECOND = 20 };
#define BATCH_BYTES (1u << 20)
#define RELATIVE_MOST_S (30 * 24 * 3600) /* the protocol takes a longer time for one of the clock */

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

struct run {
	const struct load_options *options;
	struct session session;
	struct warm_reader reader;
	struct tempo tempo;
	struct progress progress;
	unsigned batch; /* objects that are put, and not answered */
	uint64_t batch_bytes;
	uint64_t objects, bytes; /* read, with their keys and values */
	uint64_t stored, kept, expired, refused;
	char refusal[200]; /* the first one */
};

/* Is it an answer about this object, and not about the connection? */
static bool refuses_object(const char *line)
{
	return strncmp(line, "SERVER_ERROR", 12) == 0 ||
	       (strncmp(line, "CLIENT_ERROR", 12) == 0 && strcmp(line, "CLIENT_ERROR unauthenticated") != 0);
}

static void take_answers(struct run *run)
{
	tempo_wait(&run->tempo, run->batch, (double)run->batch_bytes);
	for (; run->batch > 0; run->batch--) {
		size_t length;
		const char *line = session_line(&run->session, &length);

		if (strcmp(line, "HD") == 0)
			run->stored++;
		else if (strcmp(line, "NS") == 0)
			run->kept++;
		else if (!refuses_object(line)) {
			client_quote(line, length, run->refusal, sizeof(run->refusal));
			arg_die("the server at %s says to \"ms\": %s", run->options->server, run->refusal);
		} else if (run->refused++ == 0) {
			client_quote(line, length, run->refusal, sizeof(run->refusal));
		}
	}
	run->batch_bytes = 0;
}

/* The exptime to send: 0: never; false: it has expired. */
static bool exptime_of(const struct run *run, const struct warm_object *object, int64_t *exptime)
{
	int64_t now = (int64_t)time(NULL), most = run->options->max_ttl_us / 1000000;
	int64_t left = object->expires < 0 ? 0 : object->expires - now;

	if (object->expires >= 0 && left <= 0)
		return false;
	if (most > 0 && (left == 0 || left > most))
		left = most;
	*exptime = left > RELATIVE_MOST_S ? now + left : left;
	return true;
}

static void put_object(struct run *run, const struct warm_object *object)
{
	double most = run->options->rate > 0 ? run->options->rate / BATCHES_PER_SECOND : BATCH_MOST;
	char key[WIRE_KEY_BYTES], tail[128];
	const char *flag;
	int64_t exptime;
	size_t length;

	if (!exptime_of(run, object, &exptime)) {
		run->expired++;
		return;
	}
	length = wire_key(object->key, object->key_bytes, key, &flag);
	session_put(&run->session, "ms ", 3);
	session_put(&run->session, key, length);
	length = (size_t)snprintf(tail, sizeof(tail), " %" PRIu32 "%s F%" PRIu64 " T%" PRId64 " M%c\r\n",
				  object->value_bytes, flag, object->client_flags, exptime,
				  run->options->overwrite ? 'S' : 'E');
	session_put(&run->session, tail, length);
	session_put(&run->session, object->value, object->value_bytes);
	session_put(&run->session, "\r\n", 2);
	run->batch++;
	run->batch_bytes += object->key_bytes + object->value_bytes;
	if (run->batch >= BATCH_MOST || run->batch_bytes >= BATCH_BYTES || (double)run->batch >= most)
		take_answers(run);
}

/* Returns the code with which the file ended: FS_ENOTFOUND if it is whole. */
static int load(struct run *run)
{
	struct warm_object object;
	char note[TEXT_BYTES];
	int code = FS_OK;

	while (!interrupted && (code = warm_reader_next(&run->reader, &object)) == FS_OK) {
		run->objects++;
		run->bytes += object.key_bytes + object.value_bytes;
		if (!run->options->verify)
			put_object(run, &object);
		if (run->objects % 1024 == 0)
			progress_show(&run->progress, -1, text_grouped(run->objects, note));
	}
	take_answers(run);
	progress_clear(&run->progress);
	return code;
}

static void report(const struct run *run)
{
	char count[TEXT_BYTES], size[TEXT_BYTES];

	printf("read     %15s objects, %s of keys and values\n", text_grouped(run->objects, count),
	       text_size((double)run->bytes, size));
	if (run->options->verify)
		return;
	printf("stored   %15s\n", text_grouped(run->stored, count));
	if (!run->options->overwrite)
		printf("kept     %15s which the server had\n", text_grouped(run->kept, count));
	printf("expired  %15s since they were dumped\n", text_grouped(run->expired, count));
	if (run->refused)
		printf("refused  %15s\n", text_grouped(run->refused, count));
}

/* Also with --quiet: the exit status is that of a failure. */
static void tell_refusals(const struct run *run)
{
	char count[TEXT_BYTES];

	if (run->refused)
		fprintf(stderr, "%s: the server at %s has refused %s object%s, the first one by %s\n",
			program_invocation_short_name, run->options->server, text_grouped(run->refused, count),
			run->refused == 1 ? "" : "s", run->refusal);
}

static FILE *open_input(struct run *run)
{
	const char *path = run->options->input;
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	int code;

	if (!file)
		arg_die("%s: %s", path, strerror(errno));
	code = warm_reader_init(&run->reader, file);
	if (code == FS_ECORRUPT) {
		fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, path, run->reader.error);
		exit(EXIT_WRONG);
	}
	if (code != FS_OK)
		arg_die("%s: %s", path, run->reader.error);
	return file;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_interrupt };
	struct load_options options;
	struct run run = { .options = &options, .session = { .client = CLIENT_CLOSED } };
	FILE *file;
	int code;

	load_options_parse(argc, argv, &options);
	file = open_input(&run);
	if (!options.verify)
		session_open(&run.session, &options.access, options.server, (uint64_t)options.timeout_us);
	progress_init(&run.progress, options.quiet);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	tempo_init(&run.tempo, options.rate, options.bandwidth);
	code = load(&run);
	if (!options.quiet)
		report(&run);
	fflush(stdout);
	tell_refusals(&run);
	if (code == FS_ESYS || code == FS_ENOMEM)
		arg_die("%s: %s", options.input, code == FS_ENOMEM ? "no memory for a part" : run.reader.error);
	if (code == FS_ECORRUPT)
		fprintf(stderr, "%s: %s: %s; what came before it is %s\n", program_invocation_short_name, options.input,
			run.reader.error, options.verify ? "whole" : "loaded");
	warm_reader_fini(&run.reader);
	session_close(&run.session);
	access_close(&options.access);
	fclose(file);
	return code == FS_ECORRUPT || run.refused ? EXIT_WRONG : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* flashield-dump: lists a server's keys, sorts them, and fetches the objects, some at a time, into a file. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "tools/common/session.h"
#include "tools/common/text.h"
#include "tools/dump/listing.h"
#include "tools/dump/options.h"

enum { BATCH_MOST = 64, BATCHES_PER_SECOND = 20 };
#define BATCH_BYTES (1u << 20)

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
	(void)number;
	interrupted = 1;
}

struct run {
	const struct dump_options *options;
	struct session session;
	struct listing listing;
	struct warm_writer writer;
	struct tempo tempo;
	struct progress progress;
	uint64_t objects, bytes, gone; /* written; their keys and values; those that were not there any more */
};

static void list_keys(struct run *run)
{
	static const char command[] = "lru_crawler metadump all";
	char *line, said[200];
	size_t length;

	session_put(&run->session, command, strlen(command));
	session_put(&run->session, "\r\n", 2);
	line = session_line(&run->session, &length);
	/* memcached 1.6.43 and later say so first. */
	if (strcmp(line, "OK") == 0)
		line = session_line(&run->session, &length);
	while (strcmp(line, "END") != 0) {
		client_quote(line, length, said, sizeof(said));
		if (listing_add(&run->listing, line) != FS_OK)
			arg_die("the server at %s says to \"%s\": %s", run->options->server, command, said);
		line = session_line(&run->session, &length);
	}
	listing_sort(&run->listing);
}

/* Takes the value that a "VA" line begins, and writes the object. */
static void take_object(struct run *run, const struct listed *listed, char *line, time_t now)
{
	struct warm_object object = { .key = listed->key, .key_bytes = listed->key_bytes, .expires = -1 };
	char *rest, *word, *words;
	uint64_t bytes = strtoull(line + 3, &words, 10);

	if (bytes > WARM_VALUE_BYTES)
		arg_die("the server at %s sent a value of %" PRIu64 " bytes", run->options->server, bytes);
	for (word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		if (word[0] == 'f')
			object.client_flags = strtoull(word + 1, NULL, 10);
		else if (word[0] == 't' && word[1] != '-')
			object.expires = (int64_t)now + strtoll(word + 1, NULL, 10);
	}
	object.value_bytes = (uint32_t)bytes;
	object.value = session_bytes(&run->session, bytes + 2);
	if (memcmp(object.value + bytes, "\r\n", 2) != 0)
		arg_die("the server at %s sent a value without its end", run->options->server);
	if (run->objects == run->options->limit || run->bytes >= run->options->limit_bytes)
		return;
	if (warm_writer_add(&run->writer, &object) != FS_OK)
		arg_die("%s: %s", run->options->output, strerror(errno));
	run->objects++;
	run->bytes += object.key_bytes + bytes;
}

static void take_answer(struct run *run, const struct listed *listed)
{
	size_t length;
	char *line = session_line(&run->session, &length), said[200];

	if (strncmp(line, "VA ", 3) == 0) {
		take_object(run, listed, line, time(NULL));
	} else if (strcmp(line, "EN") == 0) {
		run->gone++;
	} else {
		client_quote(line, length, said, sizeof(said));
		arg_die("the server at %s says to \"mg\": %s", run->options->server, said);
	}
}

/* Fetches the objects from a place on, as many as one batch may have. Returns the place behind them. */
static size_t fetch(struct run *run, size_t place)
{
	double most = run->options->rate > 0 ? run->options->rate / BATCHES_PER_SECOND : BATCH_MOST;
	size_t first = place;
	uint64_t bytes = 0;

	while (place < run->listing.count && place - first < BATCH_MOST && bytes < BATCH_BYTES &&
	       (place == first || (double)(place - first) < most)) {
		struct listed listed = listing_get(&run->listing, place++);
		char key[WIRE_KEY_BYTES];
		const char *flag;
		size_t length = wire_key(listed.key, listed.key_bytes, key, &flag);

		session_put(&run->session, "mg ", 3);
		session_put(&run->session, key, length);
		session_put(&run->session, flag, strlen(flag));
		session_put(&run->session, " v f t\r\n", 8);
		bytes += listed.bytes;
	}
	tempo_wait(&run->tempo, (double)(place - first), (double)bytes);
	for (size_t i = first; i < place; i++) {
		struct listed listed = listing_get(&run->listing, i);

		take_answer(run, &listed);
	}
	return place;
}

static FILE *open_output(const char *path)
{
	int fd = strcmp(path, "-") == 0 ? dup(STDOUT_FILENO)
					: open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

	if (!file)
		arg_die("%s: %s", path, strerror(errno));
	return file;
}

static void fetch_all(struct run *run)
{
	const struct dump_options *options = run->options;
	size_t place = 0;

	while (place < run->listing.count && !interrupted && run->objects < options->limit &&
	       run->bytes < options->limit_bytes) {
		place = fetch(run, place);
		progress_show(&run->progress, (double)place / (double)run->listing.count, "objects written");
	}
	progress_clear(&run->progress);
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = on_interrupt };
	struct dump_options options;
	struct run run = { .options = &options };
	char objects[TEXT_BYTES], gone[TEXT_BYTES], size[TEXT_BYTES];
	FILE *file;

	dump_options_parse(argc, argv, &options);
	session_open(&run.session, &options.access, options.server, (uint64_t)options.timeout_us);
	listing_init(&run.listing, options.limit);
	progress_init(&run.progress, options.quiet);
	list_keys(&run);
	file = open_output(options.output);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	tempo_init(&run.tempo, options.rate, options.bandwidth);
	if (warm_writer_init(&run.writer, file, (int64_t)time(NULL)) != FS_OK)
		arg_die("%s: %s", options.output, strerror(errno));
	fetch_all(&run);
	if (warm_writer_end(&run.writer) != FS_OK || fclose(file) != 0)
		arg_die("%s: %s", options.output, strerror(errno));
	if (!options.quiet)
		fprintf(stderr, "%s objects written, %s of keys and values; %s were gone before they were fetched\n",
			text_grouped(run.objects, objects), text_size((double)run.bytes, size),
			text_grouped(run.gone, gone));
	warm_writer_fini(&run.writer);
	listing_fini(&run.listing);
	session_close(&run.session);
	access_close(&options.access);
	return 0;
}

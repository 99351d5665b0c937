/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keys with many writers and append. A value is "<life>;" and records "<writer>:<n>:<before>:<life>;": the writer's n-th
 * record for this key, behind its record <before> that it knows to be in this life, or 0.
 *
 *   appended[key][writer] = life and n   the newest record that was acknowledged, or seen
 *
 * A value of this life that lacks such a record was put together from an older one. When the life changed while an append
 * was under way, nobody knows which life has the record: then nothing follows from its answer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stale/stale.h"

#define LOG_MOST 12000 /* bytes; a longer one is deleted */

struct log {
	_Atomic uint64_t appended[THREADS_MOST];
	_Atomic bool too_long; /* to be deleted */
	uint32_t next[THREADS_MOST]; /* each writer's own */
};

static struct log *logs;

void logs_init(void)
{
	logs = calloc(options.keys[FAMILY_LOG] + 1, sizeof(*logs));
	if (!logs)
		abort();
}

static struct log *log_of(uint32_t number)
{
	return &logs[number - family_first(FAMILY_LOG)];
}

static void raise(_Atomic uint64_t *word, uint64_t to)
{
	uint64_t is = atomic_load(word);

	while (is < to && !atomic_compare_exchange_weak(word, &is, to))
		;
}

static struct op *add(struct thread *thread, enum op_kind kind, uint32_t number)
{
	struct op *op = batch_add(thread, kind, number);

	for (unsigned i = 0; i < options.threads; i++)
		op->appended[i] = atomic_load(&log_of(number)->appended[i]);
	return op;
}

static bool make(struct thread *thread, uint32_t number, const char *name)
{
	uint64_t version = life_begin(number);
	char text[32];
	struct op *op;
	int length;

	if (version == 0)
		return false;
	op = add(thread, OP_ADD, number);
	op->version = version;
	length = snprintf(text, sizeof(text), "%" PRIu64 ";", version >> 32);
	wire_print(&thread->wire, "add %s 0 0 %d\r\n%s\r\n", name, length, text);
	return true;
}

static void append(struct thread *thread, uint32_t number, const char *name)
{
	struct op *op = add(thread, OP_APPEND, number);
	uint64_t before = op->appended[thread->number], life = before >> 32;
	char text[80];
	int length;

	op->version = life << 32 | ++log_of(number)->next[thread->number];
	length = snprintf(text, sizeof(text), "%u:%" PRIu32 ":%" PRIu32 ":%" PRIu64 ";", thread->number,
			  (uint32_t)op->version, (uint32_t)before, life);
	wire_print(&thread->wire, "append %s 0 0 %d\r\n%s\r\n", name, length, text);
}

void log_command(struct thread *thread)
{
	uint32_t number = family_first(FAMILY_LOG) + (uint32_t)rng_below(&thread->rng, options.keys[FAMILY_LOG]);
	uint64_t turn = rng_below(&thread->rng, 100);
	char name[KEY_NAME_MOST];

	key_name(number, name);
	if (make(thread, number, name))
		return;
	if (turn < 45 && !atomic_load(&log_of(number)->too_long)) {
		append(thread, number, name);
	} else if (atomic_exchange(&log_of(number)->too_long, false)) {
		add(thread, OP_DELETE, number);
		wire_print(&thread->wire, "delete %s\r\n", name);
	} else {
		add(thread, OP_GET, number);
		wire_print(&thread->wire, "get %s\r\n", name);
	}
}

/* ---- what a get showed -------------------------------------------------------------------------- */

struct reading {
	const struct op *op;
	uint32_t number;
	uint64_t life;
	uint32_t newest[THREADS_MOST]; /* record of each writer, so far */
};

static void read_record(struct reading *reading, const char *text)
{
	unsigned writer;
	uint32_t n, before;
	uint64_t life;

	if (sscanf(text, "%u:%" SCNu32 ":%" SCNu32 ":%" SCNu64, &writer, &n, &before, &life) != 4 ||
	    writer >= options.threads)
		violation(reading->op, reading->number, "torn: the record \"%.60s\"", text);
	if (n <= reading->newest[writer])
		violation(reading->op, reading->number, "record %" PRIu32 " of writer %u comes behind %" PRIu32, n,
			  writer, reading->newest[writer]);
	if (life == reading->life && before > reading->newest[writer])
		violation(reading->op, reading->number,
			  "STALE: record %" PRIu32 " of writer %u was put behind %" PRIu32 ", but %" PRIu32
			  " was acknowledged before",
			  n, writer, reading->newest[writer], before);
	reading->newest[writer] = n;
}

/* The text is the thread's own copy, so that it may be cut. */
static void read_log(struct reading *reading, char *text)
{
	char *rest = text, *record = strsep(&rest, ";");

	if (!rest)
		violation(reading->op, reading->number, "torn: \"%.60s\"", text);
	reading->life = strtoull(record, NULL, 10);
	while ((record = strsep(&rest, ";")) && rest)
		read_record(reading, record);
	if (record && *record)
		violation(reading->op, reading->number, "torn: the end \"%.60s\"", record);
}

void log_shown(const struct op *op, const struct shown *shown)
{
	uint32_t number = op->key[0];
	struct reading reading = { .op = op, .number = number };
	struct log *log = log_of(number);
	char *copy = strndup(shown->data, shown->length);

	if (!copy)
		abort();
	if (strlen(copy) != shown->length)
		violation(op, number, "torn: a zero at byte %zu of %zu", strlen(copy), shown->length);
	atomic_store(&log->too_long, shown->length > LOG_MOST);
	read_log(&reading, copy);
	free(copy);
	key_check(op, number, op->floor[0], reading.life << 32);
	for (unsigned i = 0; i < options.threads; i++) {
		if (op->appended[i] >> 32 == reading.life && (uint32_t)op->appended[i] > reading.newest[i])
			violation(op, number,
				  "STALE: life %" PRIu64 " was shown with record %" PRIu32
				  " of writer %u, but it had %" PRIu32 " before",
				  reading.life, reading.newest[i], i, (uint32_t)op->appended[i]);
		if (reading.newest[i])
			raise(&log->appended[i], reading.life << 32 | reading.newest[i]);
	}
	key_is(number, reading.life << 32);
}

/* The record is in the life that was the newest one both before and after. */
static void appended(struct thread *thread, const struct op *op)
{
	uint32_t number = op->key[0];
	uint64_t life = op->over >> 32;

	if (life == 0 || atomic_load(&key_of(number)->issued) != life)
		return;
	raise(&log_of(number)->appended[thread->number], life << 32 | (uint32_t)op->version);
}

void log_answer(struct thread *thread, const struct op *op, const char *line)
{
	if (op->kind == OP_ADD)
		life_end(thread, op, line);
	else if (op->kind == OP_DELETE)
		life_deleted(thread, op, line);
	else if (line && strcmp(line, "STORED") == 0)
		appended(thread, op);
	else if (line && strncmp(line, "SERVER_ERROR", 12) == 0)
		atomic_fetch_add(&thread->refused, 1);
	else if (line && strcmp(line, "NOT_STORED") == 0)
		life_missed(op->key[0]);
	else if (line)
		violation(op, op->key[0], "the answer was \"%s\"", line);
}

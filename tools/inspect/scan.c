/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/inspect/scan.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "tools/common/args.h"
#include "tools/common/text.h"

struct scan {
	const struct scan_request *request;
	const struct scan_ops *ops;
	void *context;
	pthread_mutex_t mutex; /* covers all fields below */
	pthread_cond_t done_changed;
	uint32_t next; /* of request->numbers, for the thread that is free */
	bool *done; /* by index in request->numbers */
	struct scan_outcome *outcomes;
	uint64_t read_bytes;
};

static void check_memory(int rc)
{
	if (rc != FS_OK)
		arg_die("%s", fs_strerror(rc));
}

/* ---- one segment ----------------------------------------------------------------------------- */

struct look {
	const struct scan_ops *ops;
	struct scan_outcome *outcome;
};

static void on_record(void *context, const struct format_record *record, bool good)
{
	const struct look *look = context;

	if (look->ops->record)
		look->ops->record(look->outcome->state, record, good);
}

static void keep_failure(struct scan_outcome *outcome, uint64_t offset, const char *text)
{
	struct scan_failure *failure;

	outcome->failures++;
	if (outcome->kept_count == SCAN_FAILURES_KEPT)
		return;
	if (!outcome->kept)
		outcome->kept = mem_must_zalloc(SCAN_FAILURES_KEPT * sizeof(*outcome->kept));
	failure = &outcome->kept[outcome->kept_count++];
	failure->offset = offset;
	snprintf(failure->text, sizeof(failure->text), "%s", text);
}

static void on_failure(void *context, uint64_t offset, const char *text)
{
	keep_failure(((const struct look *)context)->outcome, offset, text);
}

static void forget(struct scan_outcome *outcome, const struct scan_ops *ops)
{
	if (outcome->state)
		ops->drop(outcome->state);
	mem_free(outcome->kept);
	outcome->state = NULL;
	outcome->kept = NULL;
	outcome->kept_count = 0;
	outcome->failures = 0;
	outcome->walked = false;
}

/* Walks the segment once. True when it was overwritten since the look at it. */
static bool walk_once(const struct scan *scan, const struct format_super *super, struct window *window,
		      struct scan_outcome *outcome)
{
	static const struct walk_events events = { .record = on_record, .failure = on_failure };
	struct look look = { .ops = scan->ops, .outcome = outcome };
	bool changed = false;

	outcome->walked = true;
	outcome->state = scan->ops->begin ? scan->ops->begin(scan->context, &outcome->segment) : NULL;
	check_memory(walk_segment(super, &outcome->segment, window, &events, &look, &outcome->totals));
	if (outcome->failures > 0)
		check_memory(segment_changed(scan->request->flash, &outcome->segment, &changed));
	return changed || outcome->totals.overtaken;
}

static void scan_segment(const struct scan *scan, uint32_t number, struct window *window, struct scan_outcome *outcome)
{
	const struct flash *flash = scan->request->flash;
	struct format_super super = flash->super;
	bool overtaken = false;

	for (int round = 0; round < 2; round++) {
		forget(outcome, scan->ops);
		if (round > 0)
			segment_wait(flash, &super);
		check_memory(segment_look(flash, number, scan->request->newest, &outcome->segment));
		if (outcome->segment.state != SEGMENT_COMPLETE)
			break;
		overtaken = walk_once(scan, &super, window, outcome);
		if (!overtaken && (outcome->failures == 0 || !flash_in_use(flash)))
			return;
	}
	if (outcome->segment.state == SEGMENT_COMPLETE && overtaken) {
		forget(outcome, scan->ops);
		segment_set_writing(&outcome->segment);
	}
	if (segment_failed(&outcome->segment))
		keep_failure(outcome, 0, outcome->segment.why);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *run_thread(void *argument)
{
	struct scan *scan = argument;
	struct window window;

	window_init(&window, scan->request->flash);
	pthread_mutex_lock(&scan->mutex);
	while (scan->next < scan->request->count) {
		uint32_t index = scan->next++;

		pthread_mutex_unlock(&scan->mutex);
		scan_segment(scan, scan->request->numbers[index], &window, &scan->outcomes[index]);
		pthread_mutex_lock(&scan->mutex);
		scan->done[index] = true;
		pthread_cond_signal(&scan->done_changed);
	}
	scan->read_bytes += window.read_bytes;
	pthread_mutex_unlock(&scan->mutex);
	window_fini(&window);
	return NULL;
}

static void wait_for(struct scan *scan, uint32_t index)
{
	pthread_mutex_lock(&scan->mutex);
	while (!scan->done[index])
		pthread_cond_wait(&scan->done_changed, &scan->mutex);
	pthread_mutex_unlock(&scan->mutex);
}

static void hand_out(struct scan *scan)
{
	const struct scan_request *request = scan->request;
	struct progress progress;

	progress_init(&progress, request->quiet);
	for (uint32_t index = 0; index < request->count; index++) {
		struct scan_outcome *outcome = &scan->outcomes[index];

		progress_show(&progress, (double)index / request->count, request->note);
		wait_for(scan, index);
		if (outcome->failures > 0)
			progress_clear(&progress); /* the caller may print */
		scan->ops->end(scan->context, outcome);
		mem_free(outcome->kept);
	}
	progress_clear(&progress);
}

uint64_t scan_run(const struct scan_request *request, const struct scan_ops *ops, void *context)
{
	struct scan scan = { .request = request, .ops = ops, .context = context };
	pthread_t *threads = mem_must_zalloc(request->threads * sizeof(*threads));

	must(request->threads > 0);
	scan.done = mem_must_zalloc((uint64_t)request->count + 1);
	scan.outcomes = mem_must_zalloc(((uint64_t)request->count + 1) * sizeof(*scan.outcomes));
	pthread_mutex_init(&scan.mutex, NULL);
	pthread_cond_init(&scan.done_changed, NULL);
	for (unsigned i = 0; i < request->threads; i++)
		must(pthread_create(&threads[i], NULL, run_thread, &scan) == 0);
	hand_out(&scan);
	for (unsigned i = 0; i < request->threads; i++)
		must(pthread_join(threads[i], NULL) == 0);
	pthread_cond_destroy(&scan.done_changed);
	pthread_mutex_destroy(&scan.mutex);
	mem_free(scan.outcomes);
	mem_free(scan.done);
	mem_free(threads);
	return scan.read_bytes;
}

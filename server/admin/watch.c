/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/admin/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/events.h"
#include "base/lock.h"
#include "base/thread.h"
#include "server/conn/conn.h"

/* Between two drains: the shorter the more lines come, so that the threads' rings don't fill. */
#define DRAIN_LEAST_MS 1
#define DRAIN_MOST_MS 20
#define NOTE_BYTES 64u /* a note about lines that a watcher has missed */
#define LEAST_BYTES (EVENT_LINE_MAX + NOTE_BYTES)

struct watcher {
	struct watcher *next;
	struct watch *watch;
	struct loan *loan;
	unsigned streams;
	bool gone;
	bool stuck; /* its socket is full; until the next drain */
	uint64_t skipped; /* lines that it missed since the last one that it got */
	size_t head, tail; /* bytes that wait to be sent */
	char buffer[];
};

struct watch {
	pthread_t thread;
	int wake_fd;
	size_t buffer_bytes;
	struct lock lock; /* covers joining and stopping */
	struct watcher *joining;
	bool stopping;
	struct watcher *watchers; /* the watch thread's */
	int pause_ms; /* the watch thread's: until the next drain */
	atomic_uint count; /* watchers and those whose loan has not begun; at most WATCHERS_MAX stay */
	_Atomic uint64_t sent, skipped;
};

static void wake_watch_thread(const struct watch *watch)
{
	uint64_t one = 1;

	if (write(watch->wake_fd, &one, sizeof(one)) < 0)
		return; /* a full eventfd wakes the thread too */
}

/* ---- joining, on a worker ---------------------------------------------------------------------- */

static void forget_watcher(struct watch *watch, struct watcher *watcher)
{
	unsigned before = atomic_fetch_sub(&watch->count, 1);

	must(before > 0);
	mem_free(watcher);
}

/* The loan begins, or (NULL) the connection was closed before that. */
static void take_watch_loan(void *context, struct loan *loan)
{
	struct watcher *watcher = context;
	struct watch *watch = watcher->watch;
	bool late;

	if (!loan) {
		forget_watcher(watch, watcher);
		return;
	}
	watcher->loan = loan;
	lock_acquire(&watch->lock);
	late = watch->stopping;
	if (!late) {
		watcher->next = watch->joining;
		watch->joining = watcher;
	}
	lock_release(&watch->lock);
	if (late) {
		loan_return(loan, true);
		forget_watcher(watch, watcher);
	} else {
		wake_watch_thread(watch);
	}
}

int watch_join(struct watch *watch, struct conn *conn, unsigned streams)
{
	struct watcher *watcher;

	if (atomic_fetch_add(&watch->count, 1) >= WATCHERS_MAX) {
		atomic_fetch_sub(&watch->count, 1);
		return FS_EFULL;
	}
	watcher = mem_alloc(sizeof(*watcher) + watch->buffer_bytes);
	if (!watcher) {
		atomic_fetch_sub(&watch->count, 1);
		return FS_ENOMEM;
	}
	*watcher = (struct watcher){ .watch = watch, .streams = streams };
	if (conn_lend(conn, take_watch_loan, watcher))
		return FS_OK;
	forget_watcher(watch, watcher);
	return FS_EINVAL;
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Their buffers begin with the answer to "watch". It is sent after want_streams(), so that a client that has read it
   misses no later event. */
static void admit_watchers(struct watch *watch)
{
	static const char answer[] = "OK\r\n";
	struct watcher *watcher;

	lock_acquire(&watch->lock);
	while ((watcher = watch->joining)) {
		watch->joining = watcher->next;
		watcher->next = watch->watchers;
		watch->watchers = watcher;
		memcpy(watcher->buffer, answer, sizeof(answer) - 1);
		watcher->tail = sizeof(answer) - 1;
	}
	lock_release(&watch->lock);
}

static void want_streams(const struct watch *watch)
{
	unsigned streams = 0;

	for (const struct watcher *w = watch->watchers; w; w = w->next)
		streams |= w->streams;
	events_want(streams);
}

static bool has_room(const struct watch *watch, struct watcher *watcher, size_t bytes)
{
	must(watcher->head <= watcher->tail && watcher->tail <= watch->buffer_bytes);
	if (watch->buffer_bytes - watcher->tail < bytes && watcher->head > 0) {
		memmove(watcher->buffer, watcher->buffer + watcher->head, watcher->tail - watcher->head);
		watcher->tail -= watcher->head;
		watcher->head = 0;
	}
	return watch->buffer_bytes - watcher->tail >= bytes;
}

static void send_some(struct watcher *watcher)
{
	while (watcher->head < watcher->tail) {
		ssize_t sent = loan_send(watcher->loan, watcher->buffer + watcher->head, watcher->tail - watcher->head);

		if (sent < 0) {
			watcher->gone = errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR;
			return;
		}
		must((size_t)sent <= watcher->tail - watcher->head);
		watcher->head += (size_t)sent;
	}
	watcher->head = watcher->tail = 0;
}

/* Makes room by sending, unless the socket is full. */
static bool make_room(const struct watch *watch, struct watcher *watcher, size_t bytes)
{
	if (has_room(watch, watcher, bytes))
		return true;
	if (watcher->stuck)
		return false;
	send_some(watcher);
	watcher->stuck = watcher->head < watcher->tail;
	return has_room(watch, watcher, bytes);
}

static void append(struct watcher *watcher, const char *text, size_t length)
{
	memcpy(watcher->buffer + watcher->tail, text, length);
	watcher->tail += length;
}

/* A note about lines that were skipped always has a line behind it. */
static void give_line(struct watch *watch, struct watcher *watcher, const char *line, size_t length)
{
	char note[NOTE_BYTES];
	size_t note_length = 0;

	if (watcher->skipped > 0)
		note_length = (size_t)snprintf(note, sizeof(note), "skipped=%" PRIu64 "\n", watcher->skipped);
	if (!make_room(watch, watcher, note_length + length)) {
		watcher->skipped++;
		atomic_fetch_add(&watch->skipped, 1);
		return;
	}
	append(watcher, note, note_length);
	append(watcher, line, length);
	watcher->skipped = 0;
	atomic_fetch_add(&watch->sent, 1);
}

static void see_line(void *context, enum event_stream stream, const char *line, size_t length)
{
	struct watch *watch = context;

	for (struct watcher *w = watch->watchers; w; w = w->next)
		if (w->streams >> stream & 1)
			give_line(watch, w, line, length);
}

static void dismiss_watcher(struct watch *watch, bool all)
{
	struct watcher **link = &watch->watchers;

	while (*link) {
		struct watcher *watcher = *link;

		if (!all && !watcher->gone) {
			link = &watcher->next;
			continue;
		}
		*link = watcher->next;
		loan_return(watcher->loan, true);
		forget_watcher(watch, watcher);
	}
}

/* Returns when a watcher may be sent something, one joins, or events may be waiting. */
static void sleep_until_due(const struct watch *watch)
{
	struct pollfd fds[1 + WATCHERS_MAX] = { { .fd = watch->wake_fd, .events = POLLIN } };
	unsigned count = 1;
	uint64_t times;

	for (const struct watcher *w = watch->watchers; w && count <= WATCHERS_MAX; w = w->next) {
		fds[count].fd = loan_fd(w->loan);
		fds[count++].events = w->head < w->tail ? POLLOUT : 0;
	}
	if (poll(fds, count, watch->watchers ? watch->pause_ms : -1) > 0 && fds[0].revents &&
	    read(watch->wake_fd, &times, sizeof(times)) < 0)
		return;
}

static bool told_to_stop(struct watch *watch)
{
	bool stopping;

	lock_acquire(&watch->lock);
	stopping = watch->stopping;
	lock_release(&watch->lock);
	return stopping;
}

static void drain(struct watch *watch)
{
	int lines;

	for (struct watcher *w = watch->watchers; w; w = w->next)
		w->stuck = false;
	lines = events_drain(see_line, watch);
	if (lines < 0)
		atomic_fetch_add(&watch->skipped, 1);
	watch->pause_ms = lines != 0 ? DRAIN_LEAST_MS : 2 * watch->pause_ms;
	if (watch->pause_ms > DRAIN_MOST_MS)
		watch->pause_ms = DRAIN_MOST_MS;
}

static void *watch_main(void *context)
{
	struct watch *watch = context;

	while (!told_to_stop(watch)) {
		sleep_until_due(watch);
		admit_watchers(watch);
		want_streams(watch);
		drain(watch);
		for (struct watcher *w = watch->watchers; w; w = w->next) {
			send_some(w);
			w->gone = w->gone || loan_peer_gone(w->loan);
		}
		dismiss_watcher(watch, false);
		want_streams(watch);
	}
	admit_watchers(watch);
	events_want(0);
	dismiss_watcher(watch, true);
	return NULL;
}

/* ---- start and stop ---------------------------------------------------------------------------- */

int watch_start(struct watch **out, size_t buffer_bytes)
{
	struct watch *watch = mem_must_zalloc(sizeof(*watch));

	watch->pause_ms = DRAIN_MOST_MS;
	watch->buffer_bytes = buffer_bytes < LEAST_BYTES ? LEAST_BYTES : buffer_bytes;
	lock_init(&watch->lock, LOCK_LEAF);
	watch->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (watch->wake_fd < 0 || thread_start(&watch->thread, watch_main, watch) != 0) {
		if (watch->wake_fd >= 0)
			close(watch->wake_fd);
		lock_fini(&watch->lock);
		mem_free(watch);
		return FS_ESYS;
	}
	pthread_setname_np(watch->thread, "watch");
	*out = watch;
	return FS_OK;
}

void watch_stop(struct watch *watch)
{
	if (!watch)
		return;
	lock_acquire(&watch->lock);
	watch->stopping = true;
	lock_release(&watch->lock);
	wake_watch_thread(watch);
	pthread_join(watch->thread, NULL);
}

void watch_destroy(struct watch *watch)
{
	if (!watch)
		return;
	must(!watch->watchers && !watch->joining);
	close(watch->wake_fd);
	lock_fini(&watch->lock);
	mem_free(watch);
}

void watch_get_status(const struct watch *watch, struct watch_status *out)
{
	*out = (struct watch_status){ .watchers = atomic_load(&watch->count),
				      .sent = atomic_load(&watch->sent),
				      .skipped = atomic_load(&watch->skipped) };
}

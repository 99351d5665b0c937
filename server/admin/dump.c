/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/admin/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/events.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/thread.h"
#include "server/conn/conn.h"

#define BUFFER_BYTES (64u << 10)
#define LINE_MAX_BYTES 1280u /* a key with each byte escaped, and eight numbers */
#define POLL_MS 100
#define WARN_MS 60000u

struct dump {
	struct store *store;
	pthread_t thread;
	struct lock lock; /* covers job and stopping */
	pthread_cond_t cond;
	struct loan *loan; /* the dump to begin; NULL: none is waiting */
	bool stopping;
	_Atomic bool stop; /* the same, for the walk */
	atomic_bool busy; /* from dump_begin until all lines are sent */
	/* The dump under way. The worker sets it before the loan, then it is the dump thread's: */
	struct dump_wish wish;
	uint64_t warned_ms; /* when the last log line about a dump with gaps was written */
	bool broken; /* the client has closed, or takes nothing */
	size_t used;
	char buffer[BUFFER_BYTES];
};

/* ---- asking, on a worker ---------------------------------------------------------------------- */

static void take_dump_loan(void *context, struct loan *loan)
{
	struct dump *dump = context;
	bool late;

	lock_acquire(&dump->lock);
	late = dump->stopping;
	if (!late)
		dump->loan = loan;
	lock_release(&dump->lock);
	if (loan && !late) {
		pthread_cond_signal(&dump->cond);
		return;
	}
	if (loan)
		loan_return(loan, true);
	atomic_store(&dump->busy, false);
}

int dump_begin(struct dump *dump, struct conn *conn, const struct dump_wish *wish)
{
	if (atomic_exchange(&dump->busy, true))
		return FS_EBUSY;
	dump->wish = *wish;
	if (conn_lend(conn, take_dump_loan, dump))
		return FS_OK;
	atomic_store(&dump->busy, false);
	return FS_EINVAL;
}

/* ---- sending --------------------------------------------------------------------------------- */

static bool wait_for_dump_room(struct dump *dump, struct loan *loan, uint64_t since_ms)
{
	struct pollfd fd = { .fd = loan_fd(loan), .events = POLLOUT };

	if (atomic_load(&dump->stop) || clk_now_ms(clk_boot()) - since_ms > DUMP_STALL_MS)
		return false;
	return poll(&fd, 1, POLL_MS) >= 0 || errno == EINTR;
}

/* Sends everything in the buffer. False: the client is given up. */
static bool flush_dump(struct dump *dump, struct loan *loan)
{
	uint64_t since_ms = clk_now_ms(clk_boot());
	size_t at = 0;

	must(dump->used <= BUFFER_BYTES);
	while (at < dump->used && !dump->broken) {
		ssize_t sent = loan_send(loan, dump->buffer + at, dump->used - at);

		if (sent > 0) {
			at += (size_t)sent;
			since_ms = clk_now_ms(clk_boot());
		} else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
			dump->broken = !wait_for_dump_room(dump, loan, since_ms);
		} else {
			dump->broken = true;
		}
	}
	dump->used = 0;
	return !dump->broken;
}

static bool is_plain_key(const char *key, unsigned length)
{
	for (unsigned i = 0; i < length; i++)
		if ((unsigned char)key[i] <= ' ' || key[i] == 0x7f)
			return false;
	return true;
}

static size_t write_base64(const char *bytes, unsigned length, char *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *at = out;

	for (unsigned i = 0; i < length; i += 3) {
		unsigned left = length - i;
		uint32_t three = (uint32_t)(unsigned char)bytes[i] << 16;

		three |= left > 1 ? (uint32_t)(unsigned char)bytes[i + 1] << 8 : 0;
		three |= left > 2 ? (uint32_t)(unsigned char)bytes[i + 2] : 0;
		*at++ = digits[three >> 18];
		*at++ = digits[three >> 12 & 63];
		*at++ = left > 1 ? digits[three >> 6 & 63] : '=';
		*at++ = left > 2 ? digits[three & 63] : '=';
	}
	return (size_t)(at - out);
}

static int format_mg(char *out, const struct store_seen *object)
{
	char text[(STORE_KEY_MAX + 2) / 3 * 4];
	int length = object->key_length;

	if (is_plain_key(object->key, object->key_length))
		return snprintf(out, LINE_MAX_BYTES, "mg %.*s\r\n", length, object->key);
	length = (int)write_base64(object->key, object->key_length, text);
	return snprintf(out, LINE_MAX_BYTES, "mg %.*s b\r\n", length, text);
}

static int format_meta(char *out, const struct store_seen *object, bool blank_last)
{
	char key[3 * STORE_KEY_MAX + 1];

	return snprintf(out, LINE_MAX_BYTES,
			"key=%s exp=%" PRId64 " la=%" PRId64 " cas=%" PRIu64 " fetch=%s cls=%u size=%u flags=%u%s\n",
			events_key(object->key, object->key_length, key), object->expires, object->accessed,
			object->cas, object->fetched ? "yes" : "no", object->class, object->bytes, object->client_flags,
			blank_last ? " " : "");
}

struct walk {
	struct dump *dump;
	struct loan *loan;
};

static bool dump_object(void *context, const struct store_seen *object)
{
	const struct walk *walk = context;
	struct dump *dump = walk->dump;
	char *out;

	if (atomic_load(&dump->stop))
		return false;
	if (!dump->wish.all && (object->class >= DUMP_CLASSES || !dump->wish.classes[object->class]))
		return true;
	if (dump->used + LINE_MAX_BYTES > BUFFER_BYTES && !flush_dump(dump, walk->loan))
		return false;
	out = dump->buffer + dump->used;
	dump->used += (size_t)(dump->wish.form == DUMP_MG ? format_mg(out, object)
							  : format_meta(out, object, dump->wish.blank_last));
	return true;
}

/* Clients may ask again and again: not each dump is worth a line. */
static void warn_of_gaps(struct dump *dump, int code)
{
	uint64_t now_ms = clk_now_ms(clk_boot());

	if (dump->warned_ms != 0 && now_ms - dump->warned_ms < WARN_MS)
		return;
	dump->warned_ms = now_ms;
	log_warn("a dump of all keys is incomplete: %s", fs_strerror(code));
}

static void run_dump(struct dump *dump, struct loan *loan)
{
	struct walk walk = { dump, loan };
	int code;

	dump->used = dump->wish.ok_first ? (size_t)snprintf(dump->buffer, BUFFER_BYTES, "OK\r\n") : 0;
	dump->broken = false;
	code = store_walk(dump->store, true, dump_object, &walk);
	if (code != FS_OK)
		warn_of_gaps(dump, code);
	if (!dump->broken && !atomic_load(&dump->stop)) {
		const char *end = dump->wish.form == DUMP_MG ? "EN\r\n" : "END\r\n";

		if (dump->used + LINE_MAX_BYTES > BUFFER_BYTES)
			flush_dump(dump, loan);
		memcpy(dump->buffer + dump->used, end, strlen(end));
		dump->used += strlen(end);
		flush_dump(dump, loan);
	} else {
		dump->broken = true;
	}
}

static void *dump_main(void *context)
{
	struct dump *dump = context;
	struct loan *late;

	lock_acquire(&dump->lock);
	while (!dump->stopping) {
		struct loan *loan = dump->loan;
		bool broken;

		if (!loan) {
			pthread_cond_wait(&dump->cond, &dump->lock.mutex);
			continue;
		}
		dump->loan = NULL;
		lock_release(&dump->lock);
		run_dump(dump, loan);
		broken = dump->broken;
		must(atomic_load(&dump->busy));
		atomic_store(&dump->busy, false); /* first: a client that has read the last line may ask again */
		loan_return(loan, broken);
		lock_acquire(&dump->lock);
	}
	late = dump->loan;
	dump->loan = NULL;
	lock_release(&dump->lock);
	if (late)
		loan_return(late, true);
	return NULL;
}

/* ---- start and stop ---------------------------------------------------------------------------- */

int dump_start(struct dump **out, struct store *store)
{
	struct dump *dump = mem_must_zalloc(sizeof(*dump));

	dump->store = store;
	lock_init(&dump->lock, LOCK_LEAF);
	pthread_cond_init(&dump->cond, NULL);
	if (thread_start(&dump->thread, dump_main, dump) != 0) {
		dump_destroy(dump);
		return FS_ESYS;
	}
	pthread_setname_np(dump->thread, "dump");
	*out = dump;
	return FS_OK;
}

void dump_stop(struct dump *dump)
{
	if (!dump)
		return;
	atomic_store(&dump->stop, true);
	lock_acquire(&dump->lock);
	dump->stopping = true;
	lock_release(&dump->lock);
	pthread_cond_signal(&dump->cond);
	pthread_join(dump->thread, NULL);
}

void dump_destroy(struct dump *dump)
{
	if (!dump)
		return;
	pthread_cond_destroy(&dump->cond);
	lock_fini(&dump->lock);
	mem_free(dump);
}

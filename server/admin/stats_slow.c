/* SPDX-License-Identifier: BSD-3-Clause */
/* "stats slow [COUNT]": the newest entries of the slow log, the newest first. A row's name has the entry's number. */
#include "server/admin/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/events.h"
#include "base/metrics/counters.h"
#include "server/count/slow.h"
#include "server/store/store.h"

#define ROWS_DEFAULT 100u

static const char *const tiers[] = { [SLOW_NOWHERE] = "none", [SLOW_DRAM] = "dram", [SLOW_FLASH] = "flash" };

/* In the heap, which core dumps leave out: a stack keeps the keys of a report for long. */
struct row_text {
	char text[3 * STORE_KEY_MAX + 512];
	char peer[3 * SLOW_PEER_BYTES];
};

/* An address as one word: "unix:" may be followed by a path with any byte. */
static void escape_peer(const char *peer, char out[3 * SLOW_PEER_BYTES])
{
	for (; *peer; peer++) {
		bool plain = *peer > ' ' && *peer < 0x7f && *peer != '%';

		out += snprintf(out, 4, plain ? "%c" : "%%%02X", (unsigned char)*peer);
	}
	*out = 0;
}

static void add_entry(struct stats_out *out, const struct slow_entry *entry, struct row_text *row)
{
	char name[32];
	size_t at;

	snprintf(name, sizeof(name), "%" PRIu64, entry->number);
	escape_peer(entry->peer, row->peer);
	at = (size_t)snprintf(row->text, sizeof(row->text),
			      "at=%" PRId64 " cmd=%s status=%s from=%s hash=%016" PRIx64 " size=%" PRIu64
			      " total_us=%" PRIu64 " queue_us=%" PRIu64 " run_us=%" PRIu64 " flash_us=%" PRIu64
			      " send_us=%" PRIu64 " reads=%u together=%u cfd=%d",
			      entry->at, entry->command, entry->result, tiers[entry->tier], entry->hash, entry->bytes,
			      entry->total_us, entry->queue_us, entry->run_us, entry->flash_us, entry->send_us,
			      entry->reads, entry->together, entry->conn);
	if (row->peer[0])
		at += (size_t)snprintf(row->text + at, sizeof(row->text) - at, " peer=%s", row->peer);
	if (entry->key && entry->key[0] <= STORE_KEY_MAX &&
	    at + sizeof(" key=") + 3u * entry->key[0] < sizeof(row->text)) {
		memcpy(row->text + at, " key=", sizeof(" key="));
		events_key((const char *)entry->key + 1, entry->key[0], row->text + at + strlen(" key="));
	}
	out->row(out, name, row->text);
}

const char *stats_slow(const struct server *server, const char *words, struct stats_out *out)
{
	char *rest;
	unsigned long most = *words ? strtoul(words, &rest, 10) : ROWS_DEFAULT;
	struct slow_entry *entries = NULL;
	struct row_text *row = NULL;
	struct slow_settings settings;
	uint64_t newest = 0;
	unsigned count = 0;

	(void)server;
	if (*words && (*words < '0' || *words > '9' || *rest || most == 0 || most > SLOW_ENTRIES))
		return "CLIENT_ERROR usage: stats slow [1 to 1024]\r\n";
	slow_get(&settings);
	entries = mem_alloc(most * sizeof(*entries));
	row = mem_alloc(sizeof(*row));
	if (entries && row)
		count = slow_copy(entries, (unsigned)most, &newest);
	stats_add(out, "threshold_us", "%" PRIu64, settings.threshold_us);
	stats_add(out, "keys", "%s", settings.keys ? "yes" : "no");
	stats_add(out, "slow_requests", "%" PRIu64, ctr_sum(CTR_slow_requests));
	stats_add(out, "newest", "%" PRIu64, newest);
	for (unsigned i = 0; i < count; i++) {
		add_entry(out, &entries[i], row);
		mem_free(entries[i].key);
	}
	mem_free(row);
	mem_free(entries);
	return STATS_END;
}

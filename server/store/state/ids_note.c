/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/ids_note.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/store/state/ids.h"
#include "server/store/state/instance.h"

#define IDS_END (1ull << 53)

struct ids_note {
	char path[INSTANCE_PATH_BYTES];
	uint64_t noted;
	bool failed; /* the last time: it is logged once */
};

static void note(struct store *store, uint64_t end)
{
	struct ids_note *ids = store->ids_note;
	char text[32];

	if (end == ids->noted)
		return;
	snprintf(text, sizeof(text), "%" PRIu64 "\n", end);
	if (instance_write(ids->path, text)) {
		ids->noted = end;
		ids->failed = false;
		return;
	}
	if (!ids->failed)
		log_warn("%s can't be written: %s: CAS ids may repeat if the flash file is lost", ids->path,
			 strerror(errno));
	ids->failed = true;
}

int ids_note_read(const char *path, uint64_t *end)
{
	char text[INSTANCE_NOTE_BYTES], *behind;

	if (!instance_read(path, text))
		return FS_ENOTFOUND;
	*end = strtoull(text, &behind, 10);
	return text[0] >= '1' && text[0] <= '9' && strcmp(behind, "\n") == 0 && *end < IDS_END ? FS_OK : FS_ECORRUPT;
}

/* Returns the first id that was never given, as far as the file tells. */
static uint64_t read_noted(const char *path)
{
	uint64_t noted;
	int result = ids_note_read(path, &noted);

	if (result != FS_ECORRUPT)
		return result == FS_OK ? noted : 1;
	log_warn("%s is damaged: CAS ids go on from the wall clock's", path);
	return seg_clock_cas();
}

/* Skips to this id. */
static void go_on_at(struct store *store, uint64_t id)
{
	uint64_t first, end;

	if (id < atomic_load(&store->cas_reserved)) {
		atomic_store(&store->cas_next, id);
		return;
	}
	seg_skip_cas(store->segments, id);
	if (seg_reserve_cas(store->segments, IDS_RESERVE, &first, &end) != FS_OK) {
		log_warn("flash: no CAS ids from %" PRIu64 " on can be reserved: they may repeat", id);
		return;
	}
	atomic_store(&store->cas_reserved, end);
	atomic_store(&store->cas_next, first);
}

void ids_note_open(struct store *store, const char *state_dir, const char *name)
{
	char path[INSTANCE_PATH_BYTES];
	uint64_t noted, of_kin;

	must(!store->ids_note);
	store->ids_note = mem_must_zalloc(sizeof(*store->ids_note));
	instance_ids_path(state_dir, name, store->ids_note->path);
	noted = read_noted(store->ids_note->path);
	for (unsigned i = 0; i < store->config.kin_count; i++) {
		instance_ids_path(state_dir, store->config.kin[i].name, path);
		of_kin = read_noted(path);
		noted = of_kin > noted ? of_kin : noted;
	}
	if (noted + IDS_NOTE_WITHOUT_FLASH >= IDS_END) {
		log_warn("%s: 2^53 is near: CAS ids begin anew", store->ids_note->path);
		noted = 1;
	}
	if (noted > atomic_load(&store->cas_next))
		go_on_at(store, noted);
	ids_note_reserved(store);
}

void ids_note_reserved(struct store *store)
{
	if (store->ids_note)
		note(store, store->segments ? atomic_load(&store->cas_reserved)
					    : atomic_load(&store->cas_next) + IDS_NOTE_WITHOUT_FLASH);
}

void ids_note_end(struct store *store)
{
	if (store->ids_note)
		note(store, atomic_load(&store->cas_next));
}

void ids_note_close(struct store *store)
{
	mem_free(store->ids_note);
	store->ids_note = NULL;
}

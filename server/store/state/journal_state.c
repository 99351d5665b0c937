/* SPDX-License-Identifier: BSD-3-Clause */
/* The state that the entries of a journal make, but for dead records and changed keys. */
#include "base/alloc.h"
#include "server/store/state/journal_internal.h"

int journal_state_init(struct journal_state *state, uint32_t segments)
{
	*state = (struct journal_state){ .segments = segments,
					 .commit = mem_zalloc((segments + 1u) * sizeof(*state->commit)) };
	return state->commit ? FS_OK : FS_ENOMEM;
}

void journal_state_fini(struct journal_state *state)
{
	mem_free(state->commit);
	state->commit = NULL;
}

const struct journal_table *journal_state_table(const struct journal_state *state, uint32_t id)
{
	for (unsigned i = 0; i < JOURNAL_TABLES_MOST; i++)
		if (state->table[i].buckets && state->table[i].id == id)
			return &state->table[i];
	return NULL;
}

/* Is there a committed segment whose slots lie in this table? */
static bool table_is_used(const struct journal_state *state, uint32_t id)
{
	for (uint32_t s = 0; s < state->segments; s++)
		if (state->commit[s].sequence > state->floor && state->commit[s].table == id)
			return true;
	return false;
}

/*
 * A table takes the place of one that no segment needs, of the one with its own id first: an index that was made anew
 * counts its tables from the newest one that is needed on, so an id may come back with other buckets. False: there is no
 * such place.
 */
static bool take_table(struct journal_state *state, uint32_t id, uint64_t buckets)
{
	struct journal_table *free_one = NULL;

	for (unsigned i = 0; i < JOURNAL_TABLES_MOST; i++) {
		struct journal_table *known = &state->table[i];

		if (!known->buckets || known->id != id)
			continue;
		if (known->buckets != buckets && table_is_used(state, id))
			return false;
		known->buckets = buckets;
		return true;
	}
	for (unsigned i = 0; i < JOURNAL_TABLES_MOST && !free_one; i++)
		if (!state->table[i].buckets)
			free_one = &state->table[i];
	for (unsigned i = 0; i < JOURNAL_TABLES_MOST && !free_one; i++)
		if (!table_is_used(state, state->table[i].id))
			free_one = &state->table[i];
	if (free_one)
		*free_one = (struct journal_table){ .buckets = buckets, .id = id };
	return free_one != NULL;
}

bool journal_state_take(struct journal_state *state, const struct journal_entry *entry)
{
	switch (entry->kind) {
	case JOURNAL_COMMIT:
		if (entry->segment >= state->segments || entry->value == 0)
			return false;
		state->commit[entry->segment] =
			(struct journal_commit){ .sequence = entry->value, .table = entry->small };
		return true;
	case JOURNAL_UNCOMMIT:
		if (entry->segment >= state->segments)
			return false;
		if (state->commit[entry->segment].sequence == entry->value)
			state->commit[entry->segment].sequence = 0;
		return true;
	case JOURNAL_FLOOR:
		state->floor = entry->value > state->floor ? entry->value : state->floor;
		return true;
	case JOURNAL_TABLE:
		return entry->small >= 2 && entry->value <= UINT32_MAX &&
		       take_table(state, (uint32_t)entry->value, entry->small);
	case JOURNAL_FLUSH:
		state->flush_cas = entry->value > state->flush_cas ? entry->value : state->flush_cas;
		state->flush_at = 0;
		return true;
	case JOURNAL_FLUSH_AT:
		state->flush_at = entry->value;
		return true;
	case JOURNAL_SERVED:
		state->served_s = entry->value;
		return true;
	case JOURNAL_EPOCH:
		state->next_epoch = entry->value;
		return true;
	case JOURNAL_OPTION:
		if (entry->small >= JOURNAL_OPTIONS)
			return false;
		state->option[entry->small] = entry->value;
		return true;
	default:
		return false;
	}
}

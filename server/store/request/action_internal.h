/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A command under way in one critical section of its key's stripe, and what the files that carry commands
 * out share: apply.c (the table of commands), apply_read.c, apply_write.c, apply_number.c, extended.c.
 *
 * All of these run with the stripe held, but for action_finish and options_prepare.
 */
#ifndef FS_STORE_ACTION_H
#define FS_STORE_ACTION_H

#include "server/store/request/request_internal.h"

/* What the key holds at the moment: an item in DRAM, a record read from flash, or nothing. */
struct current {
	struct item *item;
	const struct seg_record *record;
	uint64_t packed_ms; /* when the record was written */
	bool read_on_flash; /* the record was asked for before */
};

struct action {
	struct store_context *context;
	struct store *store;
	struct stripe *stripe; /* held */
	struct store_request *request;
	const struct fidx_key *key; /* NULL without flash */
	/* Where the record lies that the command was given; one of them, or neither. */
	const struct fidx_match *own_slot;
	const struct fidx_extent *own_extent;
	uint64_t now_ms;
	uint32_t now_seconds;
	uint64_t cas; /* of what a writing command stores; taken by action_begin */
	struct item *garbage[2]; /* references to drop once the stripe is released */
	unsigned garbage_count;
};

static inline bool current_present(const struct current *current)
{
	return current->item || current->record;
}

/* The others: of a key that is present. */
static inline uint32_t current_expiry(const struct current *current)
{
	return current->item ? current->item->expiry : current->record->expiry;
}

static inline const char *current_value(const struct current *current)
{
	return current->item ? item_value(current->item) : current->record->value;
}

static inline uint32_t current_length(const struct current *current)
{
	return current->item ? current->item->value_length : current->record->value_length;
}

static inline uint32_t current_flags(const struct current *current)
{
	return current->item ? item_client_flags(current->item) : current->record->client_flags;
}

static inline uint64_t current_shown_cas(const struct current *current)
{
	return current->item ? item_shown_cas(current->item) : current->record->cas;
}

static inline bool current_fetched(const struct current *current)
{
	return current->item ? current->item->state & ITEM_FETCHED
			     : current->record->item_flags & 1 || current->read_on_flash;
}

/* ---- apply.c: the table of commands, and what all of them need ------------------------------- */

/* First of all in the critical section: gives a writing command its id. */
void action_begin(struct action *action);
/* The key's item in DRAM; a dead one is unlinked, with the slots that a clean copy has. */
struct item *action_find(struct action *action);
/* Executes request against current; result, value, number, cas and found are filled. */
void action_apply(struct action *action, const struct current *current);
/* The same where flash may hold an object of the key's that can't be read in time, current being what DRAM has. A
   change clears its slots first: what it answers about an absent key must be true from then on. Under -M it is
   refused. */
void action_unread(struct action *action, const struct current *current);
/* After the stripe is released. */
void action_finish(struct action *action);

/* Links new as the key's value with that id; whatever was there before is gone from both tiers. The request's
   cas becomes what clients see. */
void action_put(struct action *action, const struct current *current, struct item *new, uint64_t cas);
/* The key's slots and extent are gone. How many; under -M one at the most, that which was read. */
unsigned action_clear_slots(struct action *action);
/* To be released by action_finish; two at most. */
void action_garbage(struct action *action, struct item *item);
/* May a command itself bring so many bytes into DRAM? Under -M only while there is room, as nothing would ever
   evict it. Elsewhere the cleaner or the next set makes room. */
bool action_room_for(const struct action *action, size_t bytes);
/* The classifier is told of a write. */
void action_note_written(struct action *action, struct item *item);

/* ---- apply_read.c ---------------------------------------------------------------------------- */

void apply_get(struct action *action, const struct current *current);
void apply_touch(struct action *action, const struct current *current); /* TOUCH and GAT */
/* GET, GAT and TOUCH that are extended. */
void apply_read_with_options(struct action *action, const struct current *current);

/* ---- apply_write.c --------------------------------------------------------------------------- */

/* SET and what ends like it. The object is the request's, taken over. */
void apply_store(struct action *action, const struct current *current);
void apply_add(struct action *action, const struct current *current);
void apply_replace(struct action *action, const struct current *current);
void apply_compared(struct action *action, const struct current *current); /* CAS */
void apply_join(struct action *action, const struct current *current); /* APPEND, PREPEND */
void apply_delete(struct action *action, const struct current *current);

/* ---- apply_number.c -------------------------------------------------------------------------- */

void apply_number(struct action *action, const struct current *current); /* INCR, DECR */

/* ---- extended.c: what meta and binary commands ask beyond ------------------------------------ */

/* Before the stripe is taken: gives the request's object room for marks where it may need them. False:
   no memory, the object is dropped. */
bool options_prepare(struct store_context *context, struct store_request *request);
/* Fills found with what is there before the request. Needs no stripe for a record that a GET is answered with. */
void options_found(struct store_request *request, const struct current *current, uint32_t now_seconds, uint64_t now_ms);
/* What is made of nothing: its expiry, which found tells. Touch: the request gives it one of its own too. */
uint32_t options_made(struct action *action, bool touch);
/* The object has this expiry now. */
void options_expires(struct action *action, uint32_t expiry);
/* Does the request ask for a comparison, and is the object's id another one? (CAS, SET and REPLACE have their own.) */
bool options_differs(const struct action *action, const struct current *current);
/* The id that is to be shown of what the request stores; 0: that of ours. */
static inline uint64_t options_own_cas(const struct store_request *request)
{
	return __builtin_expect(request->has_options, 0) && request->options.own_cas ? request->options.new_cas : 0;
}
/* A new item with that room where the request needs it: NULL without memory. */
struct item *options_item(struct action *action, uint32_t client_flags, uint32_t expiry, uint64_t length);
/* The key's object in DRAM, with room for marks, no slot and no plan, its id unchanged. NULL without memory. */
struct item *options_markable(struct action *action, const struct current *current);
/* Does an object with this expiry end so soon that the request, a GET, wants it made anew? */
bool options_recaches(const struct store_request *request, uint32_t expiry, uint32_t now_seconds);
/* May a record be sent as it was read, as nothing of it changes? */
bool options_unchanged(const struct store_request *request, uint32_t expiry, uint32_t now_seconds);

#endif

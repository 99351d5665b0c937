/* SPDX-License-Identifier: BSD-3-Clause */
#include "segments/homes_internal.h"

#include <string.h>

#include "segments/segments_internal.h"

void home_user_init(struct segments *seg, struct home_user *user)
{
	for (unsigned number = 0; number < SEG_DEVICES; number++)
		atomic_init(&user->reads[number], 0);
	lock_acquire(&seg->users_lock);
	user->next = seg->users;
	user->link = &seg->users;
	if (user->next)
		user->next->link = &user->next;
	seg->users = user;
	lock_release(&seg->users_lock);
}

void home_user_fini(struct segments *seg, struct home_user *user)
{
	for (unsigned number = 0; number < SEG_DEVICES; number++)
		must(atomic_load(&user->reads[number]) == 0);
	lock_acquire(&seg->users_lock);
	*user->link = user->next;
	if (user->next)
		user->next->link = user->link;
	lock_release(&seg->users_lock);
}

struct seg_home home_enter(const struct segments *seg, struct home_user *user, uint32_t segment)
{
	struct seg_home home = seg_home(seg, segment), now;

	for (;;) {
		atomic_fetch_add(&user->reads[home.number], 1);
		now = seg_home(seg, segment);
		if (now.number == home.number)
			return now;
		home_leave(user, home.number);
		home = now;
	}
}

bool homes_in_use(struct segments *seg, unsigned number)
{
	bool used = false;

	lock_acquire(&seg->users_lock);
	for (const struct home_user *user = seg->users; user && !used; user = user->next)
		used = atomic_load(&user->reads[number]) > 0;
	lock_release(&seg->users_lock);
	return used;
}

/* ---- in the superblock ----------------------------------------------------------------------- */

uint32_t home_number(const struct segments *seg, uint32_t segment)
{
	return (uint32_t)((seg_offset(seg, segment) - LAYOUT_SUPER_BYTES) / seg->segment_bytes);
}

static uint32_t number_in(const struct layout_home *entry)
{
	return entry->home & LAYOUT_HOME_NUMBER;
}

/* The segments that are listed have each other's homes, and no home twice: else two segments would lie at one. */
bool homes_are_sound(const struct layout_super *super)
{
	const struct layout_home *home = super->home;
	bool listed = super->features.incompatible & LAYOUT_FEATURE_HOMES;
	uint8_t seen[(LAYOUT_HOME_NUMBER + 1) / 8] = { 0 };

	if (super->homes > LAYOUT_HOMES_MOST || (super->homes > 0) != listed)
		return false;
	for (uint32_t i = 0; i < super->homes; i++) {
		if (home[i].segment > LAYOUT_HOME_NUMBER || home[i].segment >= super->segments ||
		    number_in(&home[i]) >= super->segments || (i > 0 && home[i].segment <= home[i - 1].segment))
			return false;
		seen[home[i].segment / 8] |= (uint8_t)(1u << home[i].segment % 8);
	}
	for (uint32_t i = 0; i < super->homes; i++) {
		uint32_t number = number_in(&home[i]);

		if (!(seen[number / 8] >> number % 8 & 1))
			return false;
		seen[number / 8] &= (uint8_t) ~(1u << number % 8);
	}
	return true;
}

void homes_take(struct segments *seg)
{
	const struct layout_super *super = &seg->super;

	for (uint32_t i = 0; i < super->homes; i++) {
		const struct layout_home *entry = &super->home[i];
		struct seg_live *live = seg_live_at(seg, entry->segment);

		atomic_store(&live->home, seg_offset_by_number(seg, number_in(entry)));
		atomic_store(&live->partial, (entry->home & LAYOUT_HOME_PARTIAL) != 0);
		if (!(entry->home & LAYOUT_HOME_BAD))
			continue;
		live->use = HOME_BAD;
		live->state = SEG_RETIRED;
	}
}

void homes_clear(struct layout_super *super)
{
	super->homes = 0;
	memset(super->home, 0, sizeof(super->home));
	super->features.incompatible &= ~LAYOUT_FEATURE_HOMES;
}

void homes_put(const struct segments *seg, struct layout_super *super, uint32_t a, uint32_t b, bool a_is_partial)
{
	bool swapped = a != b;

	homes_clear(super);
	for (uint32_t n = 0; n < super->segments; n++) {
		const struct seg_live *live = seg_live_at(seg, n);
		uint32_t number = home_number(seg, !swapped ? n : n == a ? b : n == b ? a : n);
		bool bad = live->use == HOME_BAD || (swapped && n == b);
		bool partial = swapped && n == a ? a_is_partial : atomic_load(&live->partial);

		if (number == n && !bad)
			continue;
		must(super->homes < LAYOUT_HOMES_MOST);
		super->home[super->homes++] = (struct layout_home){
			.segment = (uint16_t)n,
			.home = (uint16_t)(number | (bad ? LAYOUT_HOME_BAD : 0) |
					   (partial && !bad ? LAYOUT_HOME_PARTIAL : 0)),
		};
	}
	if (super->homes > 0)
		super->features.incompatible |= LAYOUT_FEATURE_HOMES;
}

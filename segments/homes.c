/* SPDX-License-Identifier: BSD-3-Clause */
#include "segments/homes_internal.h"

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

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Innocent losses: a change of a key clears every slot that its tag matches, and one of them may be another key's, which
 * is then a miss. That is permitted at any time. Commands of one client that are under way together meet such a loss in
 * either order, so that from the first one on two runs of a stream may have different answers.
 *
 * A loss is innocent if the record that the slot leads to has another key's hash than the key whose slots are cleared, or
 * can't be read. Targets with a service are linked with --wrap=fidx_clear, which tells the key.
 */
#ifndef FS_TESTS_FUZZ_INNOCENT_H
#define FS_TESTS_FUZZ_INNOCENT_H

#include "tests/fuzz/service.h"

/* From now on, until innocent_end, lost(context) is called at each innocent loss; never in a service without flash. */
void innocent_begin(struct service *service, void (*lost)(void *context), void *context);
void innocent_end(void);

#endif

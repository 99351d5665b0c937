/* SPDX-License-Identifier: BSD-3-Clause */
/* Which index finds objects on flash. Part of the store's configuration. */
#ifndef FS_STORE_INDEX_H
#define FS_STORE_INDEX_H

/* Constant after open. With STORE_INDEX_FRUGAL evict is true, and there is no journal. */
enum store_index {
	STORE_INDEX_SLOTS, /* four bytes of DRAM for each object */
	STORE_INDEX_FRUGAL /* one to four for each small object (flashindex/frugal/frugal.h); larger ones have slots */
};

#endif

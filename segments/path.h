/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a start asks of a flash path before it opens it (seg_look): what lies there, how large a flash it can be, how much room
 * its file system has. Any thread; each call does little I/O, and may block on it. Nothing is locked or changed, but by
 * seg_empty_extstore.
 */
#ifndef FS_SEGMENTS_PATH_H
#define FS_SEGMENTS_PATH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Returns the size of the flash at path in bytes: of the block device (flash_bytes when that is less and not 0), or
   flash_bytes for a file. With flash_bytes 0, the size of a present file; 0 when there is none. A negative code on
   error: FS_ESYS; FS_EINVAL when path is neither file nor block device. */
FS_MUST_CHECK int64_t seg_flash_bytes(const char *path, uint64_t flash_bytes);

/* Returns how many bytes a file of this size at path could have: the file system's free bytes, and those that an
   interrupted start has reserved for the file already. UINT64_MAX where the question doesn't arise: for a block device,
   a file of full size, or a path that seg_open will refuse with a reason. */
uint64_t seg_free_bytes(const char *path, uint64_t flash_bytes);

/* Returns the size that a file of flash_bytes at path gets: flash_bytes, if so many could be had (seg_free_bytes), or if the
   question doesn't arise. Else as many as leave a twentieth of the file system free, in whole sixteenths of
   flash_bytes, so that a little more or less of room changes nothing; never fewer than the file has already. 0: not even a
   sixteenth. Any thread; asks the file system. */
uint64_t seg_fit_bytes(const char *path, uint64_t flash_bytes);

/* Looks at a flash path as seg_open would, without changing or locking anything. FS_OK: it holds a cache, is empty, is
   missing in a folder where it could be made, or, with takes_extstore, may be emptied by seg_empty_extstore. FS_EFOREIGN, FS_EINVAL (neither a regular file nor a block device), FS_ESYS
   (errno), FS_ENOMEM. Any thread; reads the file's start. */
FS_MUST_CHECK int seg_check_path(const char *path, bool takes_extstore);

/* Empties the file at path if memcached's extstore has left it, as memcached does at its start; says so in the log. FS_OK: that is
   done, or it isn't such a file, and stays. FS_EBUSY: another process has locked it, whatever it holds. FS_ESYS (errno). Before
   seg_look; locks the file while it reads the first item and empties it. */
FS_MUST_CHECK int seg_empty_extstore(const char *path);

/* Does a daemon, this process included, or memcached have the flash at path open? False too where that can't be found out. Locks
   nothing. */
FS_MUST_CHECK bool seg_is_locked(const char *path);

#endif

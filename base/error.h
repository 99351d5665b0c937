/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error codes: one table, with a text for each code.
 *
 * A function that can fail returns 0 (FS_OK) or one of these negative codes, and is marked FS_MUST_CHECK. A function
 * that also counts something returns the count, >= 0, or a code. An allocation returns NULL when memory is out
 * (base/alloc.h). A header names each function of its own that reports failure in another way. errno is part of a
 * result only with FS_ESYS. A cache miss is a result, not an error. Threads: everything here is constant.
 */
#ifndef FS_BASE_ERROR_H
#define FS_BASE_ERROR_H

/* ERR(name, number, text) */
#define FS_ERROR_TABLE(ERR) \
	ERR(FS_OK, 0, "success") \
	ERR(FS_ENOMEM, -1, "out of memory") \
	ERR(FS_EINVAL, -2, "invalid argument") \
	ERR(FS_EIO, -3, "input/output error") \
	ERR(FS_ECORRUPT, -4, "stored data fails its check") \
	ERR(FS_ESHORT, -5, "more bytes are needed") \
	ERR(FS_EFULL, -6, "no room") \
	ERR(FS_EAGAIN, -7, "not now, try again") \
	ERR(FS_EBUSY, -8, "in use by another process or reader") \
	ERR(FS_ENOTFOUND, -9, "no such entry") \
	ERR(FS_EVERSION, -10, "unknown format version or feature") \
	ERR(FS_ESYS, -11, "system call failed (see errno)") \
	ERR(FS_EOFFLINE, -12, "device is offline") \
	ERR(FS_ERANGE, -13, "value outside the accepted range") \
	ERR(FS_EFOREIGN, -14, \
	    "holds something that is not a cache; to use it, remove the file or zero the device's first MiB") \
	ERR(FS_ELATE, -15, "could not be done in time")

enum fs_error {
#define FS_ERROR_ENUM(name, number, text) name = (number),
	FS_ERROR_TABLE(FS_ERROR_ENUM)
#undef FS_ERROR_ENUM
};

/* Returns the text of a code: never NULL, static storage. An unknown code has a text too. */
const char *fs_strerror(int code);

/* Marks a function whose result must not be ignored. A caller that means to ignore it writes (void)! before the call,
   because a plain (void) doesn't silence gcc, and says why. */
#define FS_MUST_CHECK __attribute__((warn_unused_result))

#endif

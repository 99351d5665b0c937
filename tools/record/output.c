/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/record/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/alloc.h"
#include "tools/common/args.h"

#define TEXT_ROOM (64u << 10)
#define ROW_BYTES 160
#define MEMBER_TEXT_BYTES (1u << 20) /* a member has at most about so many bytes of text */
#define GZIP_WINDOW (15 + 16) /* zlib's word for gzip members */
#define QUICK 1 /* zlib's quickest level */

struct output {
	const char *path;
	int fd;
	int failure; /* errno of the first write that failed; 0: none */
	off_t written; /* up to where the file is whole: what was in it before, and whole members or pieces of text */
	bool compressed;
	z_stream stream;
	size_t used; /* of text */
	size_t member_text; /* bytes of text in the open member */
	size_t packed_used, packed_room;
	unsigned char *packed; /* the open member */
	char text[TEXT_ROOM];
};

/* Where the first write goes. Standard output may be a file that others have written to. */
static off_t first_offset(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	off_t offset = lseek(fd, 0, flags >= 0 && flags & O_APPEND ? SEEK_END : SEEK_CUR);

	return offset < 0 ? 0 : offset; /* a pipe has no offset, and can't be cut either */
}

struct output *output_open(const char *path)
{
	struct output *output = mem_must_zalloc(sizeof(*output));
	size_t length = strlen(path);

	output->path = strcmp(path, "-") == 0 ? "standard output" : path;
	output->fd = strcmp(path, "-") == 0 ? dup(STDOUT_FILENO)
					    : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (output->fd < 0)
		arg_die("%s: %s", output->path, strerror(errno));
	output->written = first_offset(output->fd);
	output->compressed = length > 3 && strcmp(path + length - 3, ".gz") == 0;
	if (output->compressed) {
		if (deflateInit2(&output->stream, QUICK, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) != Z_OK)
			arg_die("%s: no memory for compression", output->path);
		output->packed_room = deflateBound(&output->stream, MEMBER_TEXT_BYTES + TEXT_ROOM);
		output->packed = mem_must_zalloc(output->packed_room);
	}
	output->used = (size_t)snprintf(output->text, TEXT_ROOM, "time_ms,app,op,key,key_size,value_size,ttl_s\n");
	return output;
}

/* Writes all or nothing, where the file can be cut. */
static void write_whole(struct output *output, const void *bytes, size_t length)
{
	const char *at = bytes;
	size_t left = length;

	while (left > 0 && !output->failure) {
		ssize_t written = write(output->fd, at, left);

		if (written < 0 && errno != EINTR) {
			output->failure = errno;
			/* It fails on a pipe, which has no parts to be cut off. */
			if (ftruncate(output->fd, output->written) != 0)
				return;
		} else if (written > 0) {
			at += written;
			left -= (size_t)written;
		}
	}
	if (!output->failure)
		output->written += (off_t)length;
}

static void end_member(struct output *output)
{
	write_whole(output, output->packed, output->packed_used);
	output->packed_used = output->member_text = 0;
	deflateReset(&output->stream);
}

/* Hands the text on: to the open member, which ends when it is full or `end` is true, or to the file. */
static void pass_text(struct output *output, bool end)
{
	z_stream *stream = &output->stream;

	if (!output->compressed) {
		write_whole(output, output->text, output->used);
		output->used = 0;
		return;
	}
	output->member_text += output->used;
	end = (end && output->member_text > 0) || output->member_text >= MEMBER_TEXT_BYTES;
	stream->next_in = (unsigned char *)output->text;
	stream->avail_in = (unsigned)output->used;
	stream->next_out = output->packed + output->packed_used;
	stream->avail_out = (unsigned)(output->packed_room - output->packed_used);
	deflate(stream, end ? Z_FINISH : Z_NO_FLUSH); /* the room suffices, so it takes all */
	output->packed_used = output->packed_room - stream->avail_out;
	output->used = 0;
	if (end)
		end_member(output);
}

void output_row(struct output *output, const struct row *row, int64_t start_us)
{
	static const char *const words[] = { "get", "set", "delete" };

	if (output->failure)
		return;
	if (TEXT_ROOM - output->used < ROW_BYTES)
		pass_text(output, false);
	output->used += (size_t)snprintf(output->text + output->used, ROW_BYTES,
					 "%" PRId64 ",%s,%s,%016" PRIx64 ",%u,%" PRId32 ",%" PRIu32 "\n",
					 (row->time_us - start_us) / 1000, row->app, words[row->op], row->key,
					 row->key_size, row->size, row->ttl_s);
}

void output_flush(struct output *output)
{
	pass_text(output, true);
}

bool output_failed(const struct output *output)
{
	return output->failure != 0;
}

int output_close(struct output *output, char error[256])
{
	output_flush(output);
	if (close(output->fd) != 0 && !output->failure)
		output->failure = errno;
	if (output->failure)
		snprintf(error, 256, "%s: %s; it holds what came before", output->path, strerror(output->failure));
	if (output->compressed)
		deflateEnd(&output->stream);
	mem_free(output->packed);
	error[0] = output->failure ? error[0] : 0;
	mem_free(output);
	return error[0] ? FS_ESYS : FS_OK;
}

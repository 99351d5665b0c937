/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the superblock for list and verify, without its secret and hash seed. */
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "tools/common/args.h"
#include "tools/common/text.h"
#include "tools/inspect/commands.h"
#include "tools/inspect/words.h"

const char *superblock_copy_remark(const struct flash_copy copies[FORMAT_COPIES], unsigned copy, bool *failure)
{
	const struct flash_copy *this = &copies[copy], *other = &copies[1 - copy];

	*failure = true;
	if (this->unreadable)
		return "can't be read";
	if (this->verdict == FORMAT_BLANK && copy == 1 && other->super.generation == 1) {
		*failure = false;
		return "not written yet: the power went at the first start";
	}
	if (this->verdict != FORMAT_GOOD)
		return format_verdict_text(this->verdict);
	if (other->verdict != FORMAT_GOOD || this->super.checksum == other->super.checksum)
		return NULL;
	if (this->super.generation == other->super.generation)
		return copy == 1 ? "differs from copy 0 of the same generation" : NULL;
	*failure = false;
	return this->super.generation < other->super.generation ? "older: the power went between the writing of the two"
								: NULL;
}

static const char *how_it_ended(const struct format_super *super, bool in_use)
{
	if (in_use)
		return "in use by a daemon now";
	if (super->clean_epoch == super->attach_epoch)
		return "the last one ended cleanly";
	return "the last one did not note a clean end";
}

static void print_copies(const struct flash *flash)
{
	for (unsigned n = 0; n < FORMAT_COPIES; n++) {
		bool failure;
		const char *remark = superblock_copy_remark(flash->copies, n, &failure);

		printf("%s copy %u: ", n ? ";" : "superblock     ", n);
		if (flash->copies[n].verdict == FORMAT_GOOD)
			printf("generation %" PRIu64, flash->copies[n].super.generation);
		if (remark)
			printf("%s%s%s", flash->copies[n].verdict == FORMAT_GOOD ? ", " : "", failure ? "BROKEN, " : "",
			       remark);
	}
	putchar('\n');
}

static unsigned bad_homes(const struct format_super *super)
{
	unsigned bad = 0;

	for (uint32_t i = 0; i < super->homes; i++)
		bad += super->home[i].bad;
	return bad;
}

void superblock_print(const struct inspect_options *options, const struct flash *flash, bool in_use)
{
	const struct format_super *super = &flash->super;
	const struct format_features *features = &super->features;
	char uuid[WORDS_UUID_BYTES], when[WORDS_TIME_BYTES], bytes[TEXT_BYTES], size[TEXT_BYTES];

	printf("flash           %s, %s%s\n", options->path, text_size((double)flash->bytes, size),
	       flash->block_device ? ", block device" : "");
	printf("UUID            %s, made %s\n", words_uuid(super->uuid, uuid), words_time(super->made_s, when));
	printf("format          version 1, ");
	if (features->compatible | features->read_only_compatible)
		printf("unknown features: compatible 0x%" PRIx64 ", read-only compatible 0x%" PRIx64 "\n",
		       features->compatible, features->read_only_compatible);
	else
		printf("no features\n");
	printf("segments        %u of %s; %u functions (positions that a record can take)\n", super->segments,
	       text_size((double)super->segment_bytes, bytes), super->functions);
	if (super->homes > 0)
		printf("homes           %u segments are not used any more, as pages can't be read there; %u lie elsewhere than "
		       "their numbers say\n",
		       bad_homes(super), super->homes);
	printf("starts          %" PRIu64 "; %s", super->attach_epoch, how_it_ended(super, in_use));
	if (super->first_epoch < super->attach_epoch)
		printf("; warm, with objects since start %" PRIu64, super->first_epoch);
	printf("\n");
	printf("reserved        sequence numbers below %" PRIu64 ", CAS ids below %" PRIu64 "\n", super->sequence_end,
	       super->cas_end);
	print_copies(flash);
}

static json_t *features_json(const struct format_features *features)
{
	return json_pack("{s:I, s:I, s:I}", "compatible", (json_int_t)features->compatible, "read_only_compatible",
			 (json_int_t)features->read_only_compatible, "incompatible",
			 (json_int_t)features->incompatible);
}

static json_t *copies_json(const struct flash *flash)
{
	json_t *array = json_array();

	for (unsigned n = 0; n < FORMAT_COPIES; n++) {
		const struct flash_copy *copy = &flash->copies[n];
		bool failure, good = copy->verdict == FORMAT_GOOD;
		const char *remark = superblock_copy_remark(flash->copies, n, &failure);

		json_array_append_new(array,
				      json_pack("{s:b, s:I, s:s*}", "ok", good && !(remark && failure), "generation",
						good ? (json_int_t)copy->super.generation : 0, "remark", remark));
	}
	return array;
}

json_t *superblock_json(const struct flash *flash, bool in_use)
{
	const struct format_super *super = &flash->super;
	char uuid[WORDS_UUID_BYTES];

	return json_pack("{s:s, s:i, s:o, s:I, s:i, s:i, s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:I, s:I, s:o}", "uuid",
			 words_uuid(super->uuid, uuid), "version", 1, "features", features_json(&super->features),
			 "segment_bytes", (json_int_t)super->segment_bytes, "segments", (int)super->segments,
			 "functions", (int)super->functions, "attach_epoch", (json_int_t)super->attach_epoch,
			 "clean_epoch", (json_int_t)super->clean_epoch, "first_epoch", (json_int_t)super->first_epoch,
			 "in_use", in_use, "cas_end", (json_int_t)super->cas_end, "sequence_end",
			 (json_int_t)super->sequence_end, "made_s", (json_int_t)super->made_s, "flash_bytes",
			 (json_int_t)super->flash_bytes, "file_bytes", (json_int_t)flash->bytes, "copies",
			 copies_json(flash));
}

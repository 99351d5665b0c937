/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kind of a segment asks of its records, each fault provoked alone. */
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "tests/unit/tools/inspect/image.h"
#include "tools/inspect/kinds.h"

#define SEED 77u
#define BINS 4u
#define BIN(n) (FORMAT_PAGE + (uint64_t)(n)*FORMAT_PAGE)

static const struct format_super super = { .hash_seed = SEED };
static const struct format_header bins = {
	.kind = FORMAT_BINS,
	.bin_bytes = FORMAT_PAGE,
	.data_offset = FORMAT_PAGE,
	.data_bytes = BINS * FORMAT_PAGE,
	.granule = 8,
};

struct fake {
	char key[24];
	uint64_t offset, length;
	bool last;
};

/* A key of that bin; different for each n. */
static void set_key(struct fake *fake, unsigned bin, unsigned n)
{
	for (unsigned i = 0;; i++) {
		uint64_t hash;

		snprintf(fake->key, sizeof(fake->key), "k%u-%u", n, i);
		hash = hash64(fake->key, strlen(fake->key), SEED);
		if (reduce64(mix64(hash ^ 0xb10057e0e5a11ba5ull), BINS) == bin)
			return;
	}
}

static const char *take(struct kinds_check *check, const struct fake *fake, uint64_t *offset)
{
	struct format_record record = {
		.offset = fake->offset,
		.key = (const uint8_t *)fake->key,
		.key_length = (uint8_t)strlen(fake->key),
		.last_of_bin = fake->last,
	};

	return kinds_take(check, &record, fake->length, offset);
}

/* Three records in bin 1, one in bin 3. */
static void make(struct fake fakes[4])
{
	static const struct fake good[4] = {
		{ .offset = BIN(1), .length = 50 },
		{ .offset = BIN(1) + 56, .length = 64 },
		{ .offset = BIN(1) + 120, .length = FORMAT_PAGE - 120, .last = true },
		{ .offset = BIN(3), .length = 33, .last = true },
	};

	memcpy(fakes, good, sizeof(good));
	for (unsigned i = 0; i < 4; i++)
		set_key(&fakes[i], i < 3 ? 1 : 3, i);
}

/* Takes all, and wants this fault alone. NULL: none. */
static void expect(const struct fake fakes[4], uint64_t offset, const char *text)
{
	struct kinds_check check;
	const char *found = NULL;
	uint64_t at, found_at = 0;

	kinds_begin(&check, &super, &bins);
	for (unsigned i = 0; i <= 4; i++) {
		const char *what = i < 4 ? take(&check, &fakes[i], &at) : kinds_end(&check, &at);

		if (!what)
			continue;
		assert_null(found);
		found = what;
		found_at = at;
	}
	if (!text) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_non_null(strstr(found, text));
	assert_int_equal(found_at, offset);
}

static void bins_are_checked(void **state)
{
	struct fake fakes[4];

	(void)state;
	make(fakes);
	expect(fakes, 0, NULL);
	set_key(&fakes[1], 2, 9);
	expect(fakes, BIN(1) + 56, "another bin");
	make(fakes);
	fakes[3].offset += 8;
	expect(fakes, BIN(3) + 8, "a gap");
	make(fakes);
	fakes[1].offset += 8;
	fakes[1].length -= 8;
	expect(fakes, BIN(1) + 64, "a gap");
	make(fakes);
	fakes[2].length++;
	expect(fakes, BIN(1) + 120, "over the end");
	make(fakes);
	fakes[1].last = true;
	expect(fakes, BIN(1) + 56, "marked as");
	make(fakes);
	fakes[2].last = false;
	expect(fakes, BIN(1) + 120, "not marked");
	make(fakes);
	fakes[3].last = false;
	expect(fakes, BIN(3), "not marked");
}

static void a_broken_record_hides_no_more_than_its_neighbours(void **state)
{
	struct kinds_check check;
	struct fake fakes[4];
	uint64_t offset;

	(void)state;
	make(fakes);
	kinds_begin(&check, &super, &bins);
	kinds_take_broken(&check);
	assert_null(take(&check, &fakes[1], &offset));
	assert_null(take(&check, &fakes[2], &offset));
	kinds_take_broken(&check);
	assert_null(kinds_end(&check, &offset));
}

static void a_mark_outside_of_bins_is_a_fault(void **state)
{
	static const struct format_header slots = { .kind = FORMAT_SLOTS };
	struct fake fake = { .key = "k", .offset = FORMAT_PAGE, .length = 40 };
	struct kinds_check check;
	uint64_t offset;

	(void)state;
	kinds_begin(&check, &super, &slots);
	assert_null(take(&check, &fake, &offset));
	fake.last = true;
	assert_non_null(take(&check, &fake, &offset));
	assert_null(kinds_end(&check, &offset));
}

/* ---- a chain --------------------------------------------------------------------------------- */

struct link {
	const char *key, *value;
	uint32_t value_length;
};

static const struct link chain[] = {
	{ "FLCO\x01\0\0", "012345678901234567890123", 24 },
	{ "FLCH\x02\0\0", "\x01\0\0\0\x02\0\0\0\x03\0\0\0\x01\0\0\0\x14\0\0\0\0\0\0\0aabbcc\0\0kkkkcc", 38 },
	{ "FLCH\x04\0\0", "\x01\0\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0", 24 },
};

static const char *take_link(struct kinds_check *check, const struct link *link, uint8_t key_length)
{
	struct format_record record = {
		.offset = FORMAT_PAGE,
		.key = (const uint8_t *)link->key,
		.key_length = key_length,
		.value = (const uint8_t *)link->value,
		.value_length = link->value_length,
	};
	uint64_t offset;

	return kinds_take(check, &record, 0, &offset);
}

static void a_chain_is_checked(void **state)
{
	static const struct format_header header = { .kind = FORMAT_CHAIN };
	struct kinds_check check, begun;
	struct link link;

	(void)state;
	kinds_begin(&check, &super, &header);
	assert_non_null(take_link(&check, &chain[1], 8)); /* without the columns before it */
	kinds_begin(&check, &super, &header);
	link = chain[0];
	link.value_length++;
	assert_non_null(take_link(&check, &link, 8));
	kinds_begin(&check, &super, &header);
	for (unsigned i = 0; i < 3; i++) {
		begun = check;
		link = chain[i];
		link.value_length -= 4;
		assert_non_null(take_link(&begun, &link, 8));
		begun = check;
		assert_non_null(take_link(&begun, &chain[i], 7));
		assert_null(take_link(&check, &chain[i], 8));
	}
	assert_non_null(strstr(take_link(&check, &chain[2], 8), "in order"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bins_are_checked),
		cmocka_unit_test(a_broken_record_hides_no_more_than_its_neighbours),
		cmocka_unit_test(a_mark_outside_of_bins_is_a_fault),
		cmocka_unit_test(a_chain_is_checked),
	};

	return cmocka_run_group_tests_name("kinds", tests, NULL, NULL);
}

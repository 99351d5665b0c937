/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of metadump, and the order of their keys. */
#include "tests/unit/tools/tools_test.h"

#include "tools/dump/listing.h"

static int add(struct listing *listing, const char *row)
{
	char copy[1200];

	snprintf(copy, sizeof(copy), "%s", row);
	return listing_add(listing, copy);
}

static void rows_without_a_key_are_refused(void **state)
{
	static const char *const rows[] = { "",
					    "BUSY currently processing crawler request",
					    "ERROR",
					    "key=",
					    "la=1 size=2",
					    "key=a%2",
					    "key=a%zz",
					    "key=%" };
	struct listing listing;
	char row[300];

	(void)state;
	listing_init(&listing, UINT64_MAX);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(add(&listing, rows[i]), FS_EINVAL);
	snprintf(row, sizeof(row), "key=%0251d", 7);
	assert_int_equal(add(&listing, row), FS_EINVAL);
	assert_int_equal(listing.count, 0);
	listing_fini(&listing);
}

static void assert_key(const struct listing *listing, size_t place, const char *key)
{
	struct listed listed = listing_get(listing, place);

	assert_int_equal(listed.key_bytes, strlen(key));
	assert_memory_equal(listed.key, key, strlen(key));
}

static void read_ones_come_first_and_then_the_latest(void **state)
{
	struct listing listing;

	(void)state;
	listing_init(&listing, UINT64_MAX);
	assert_int_equal(add(&listing, "key=new exp=-1 la=900 cas=1 fetch=no cls=1 size=61"), FS_OK);
	assert_int_equal(add(&listing, "key=old%3a%20 exp=-1 la=100 cas=2 fetch=yes cls=1 size=62 flags=7"), FS_OK);
	assert_int_equal(add(&listing, "key=late exp=5 la=200 cas=3 fetch=yes cls=1 size=63"), FS_OK);
	assert_int_equal(add(&listing, "key=first la=900 fetch=no"), FS_OK);
	listing_sort(&listing);
	assert_key(&listing, 0, "late");
	assert_key(&listing, 1, "old: ");
	assert_key(&listing, 2, "new");
	assert_key(&listing, 3, "first");
	assert_int_equal(listing_get(&listing, 1).bytes, 62);
	listing_fini(&listing);
}

/* The hottest come last, in the middle and first in the server's order. */
static void a_limit_keeps_the_hottest_of_many(void **state)
{
	struct listing listing;
	char row[100], key[20];
	unsigned most = 0;

	(void)state;
	listing_init(&listing, 100);
	for (unsigned i = 0; i < 30000; i++) {
		unsigned heat = i * 7919u % 30000;

		snprintf(row, sizeof(row), "key=k%u la=%u fetch=yes size=1", heat, 1000 + heat);
		assert_int_equal(add(&listing, row), FS_OK);
		most = listing.count > most ? (unsigned)listing.count : most;
	}
	listing_sort(&listing);
	assert_true(most < 6000);
	assert_int_equal(listing.count, 100);
	for (unsigned i = 0; i < 100; i++) {
		snprintf(key, sizeof(key), "k%u", 29999 - i);
		assert_key(&listing, i, key);
	}
	listing_fini(&listing);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_without_a_key_are_refused),
		cmocka_unit_test(read_ones_come_first_and_then_the_latest),
		cmocka_unit_test(a_limit_keeps_the_hottest_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

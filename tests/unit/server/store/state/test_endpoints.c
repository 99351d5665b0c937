/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/store/state/endpoints.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"

enum relation { APART, OVERLAP, COVERS, SAME };

static void expect(const char *one, const char *other, enum relation relation)
{
	assert_int_equal(endpoints_overlap(one, other), relation != APART);
	assert_int_equal(endpoints_overlap(other, one), relation != APART);
	assert_int_equal(endpoints_cover(one, other), relation >= COVERS);
	assert_int_equal(endpoints_cover(other, one), relation == SAME);
}

static void what_no_client_of_the_other_reaches_is_apart(void **state)
{
	(void)state;
	expect("11211", "11212", APART);
	expect("11211", "1121", APART);
	expect("127.0.0.1:11211", "127.0.0.2:11211", APART);
	expect("127.0.0.1:11211", "127.0.0.1:11212", APART);
	expect("127.0.0.1:11211", "127.0.0.11:11211", APART);
	expect("0.0.0.0:11211", "[::]:11211", APART);
	expect("0.0.0.0:11211", "[::1]:11211", APART);
	expect("[::]:11211", "127.0.0.1:11211", APART);
	expect("[::1]:11211", "[::2]:11211", APART);
	expect("11211", "udp:11211", APART);
	expect("11211", "unix:/11211", APART);
	expect("unix:/a/sock", "unix:/b/sock", APART);
	expect("unix:/a/sock", "unix:/a/sock2", APART);
	expect("11211\n11212", "11213\nunix:/11211", APART);
}

static void what_a_client_of_both_reaches_overlaps(void **state)
{
	(void)state;
	expect("11211", "11211", SAME);
	expect("unix:/a/a b", "unix:/a/a b", SAME);
	expect("127.0.0.1:11211\n127.0.0.2:11211", "127.0.0.1:11211\n127.0.0.2:11211", SAME);
	expect("11211", "127.0.0.1:11211", COVERS);
	expect("11211", "[::1]:11211", COVERS);
	expect("11211", "0.0.0.0:11211", COVERS);
	expect("11211", "127.0.0.1:11211\n[::1]:11211", COVERS);
	expect("0.0.0.0:11211", "127.0.0.1:11211", COVERS);
	expect("[::]:11211", "[::1]:11211", COVERS);
	expect("udp:11211", "udp:127.0.0.1:11211", COVERS);
	expect("11211\n11212", "11211", COVERS);
	expect("127.0.0.1:11211\n127.0.0.2:11211", "127.0.0.2:11211", COVERS);
	expect("11211", "127.0.0.1:11211\n127.0.0.1:11212", OVERLAP);
	expect("127.0.0.1:1\n127.0.0.2:1", "127.0.0.2:1\n127.0.0.3:1", OVERLAP);
	expect("11211\nudp:11212", "11213\nudp:127.0.0.1:11212", OVERLAP);
}

static void expect_name(const char *endpoints, const char *name)
{
	char *found = endpoints_name(endpoints);

	assert_string_equal(found, name);
	mem_free(found);
}

static void udp_is_part_of_the_name_only_where_there_is_nothing_else(void **state)
{
	(void)state;
	expect_name("11211", "11211");
	expect_name("11211\nudp:11211", "11211");
	expect_name("127.0.0.1:11211\n[::1]:11211\nudp:11211", "127.0.0.1:11211\n[::1]:11211");
	expect_name("udp:11211\nudp:11212", "udp:11211\nudp:11212");
	expect_name("unix:/a/b c", "unix:/a/b c");
	expect_name("", "");
}

static void text_of_another_form_is_read_to_its_end(void **state)
{
	static const char *const texts[] = { "", "\n", ":", "udp:", "unix:", "[", "a:b:c", "udp:\n\n", "::" };

	(void)state;
	for (unsigned i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char *name = endpoints_name(texts[i]);

		assert_false(endpoints_overlap(texts[i], "127.0.0.1:11211"));
		assert_false(endpoints_overlap("11211", texts[i]));
		mem_free(name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_client_of_the_other_reaches_is_apart),
		cmocka_unit_test(what_a_client_of_both_reaches_overlaps),
		cmocka_unit_test(udp_is_part_of_the_name_only_where_there_is_nothing_else),
		cmocka_unit_test(text_of_another_form_is_read_to_its_end),
	};

	return cmocka_run_group_tests_name("store: endpoints", tests, NULL, NULL);
}

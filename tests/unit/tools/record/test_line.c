/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of memcached and of Flashield, and what is neither. */
#include "tests/unit/tools/tools_test.h"

#include "tools/record/line.h"

static struct line parsed(const char *text)
{
	struct line line;

	memset(&line, 0xff, sizeof(line));
	line_parse(text, strlen(text), &line);
	return line;
}

static void what_makes_no_sense_is_broken(void **state)
{
	static const char *const texts[] = {
		"",
		"ERROR",
		"=",
		"ts=1.2 gid=3",
		"skipped=many",
		"skipped=-1",
		"ts=1.2 gid=3 type=item_get key=a clsid=1 cfd=2 size=3",
		"ts=1.2 gid=3 type=item_get status=found clsid=1 cfd=2 size=3",
		"ts=1.2 gid=3 type=item_get key= status=found cfd=2 size=3",
		"ts=1 gid=3 type=item_get key=a status=found cfd=2 size=3",
		"ts=1.1234567 gid=3 type=item_get key=a status=found cfd=2 size=3",
		"ts=a.1 gid=3 type=item_get key=a status=found cfd=2 size=3",
		"ts=1.2 gid=-3 type=item_get key=a status=found cfd=2 size=3",
		"ts=1.2 gid=3 type=item_get key=a status=found cfd=two size=3",
		"ts=1.2 gid=3 type=item_get key=a status=found cfd=2 size=-3",
		"ts=1.2 gid=3 type=item_get key=a status=found cfd=2 size=4294967295",
		"ts=1.2 gid=3 type=item_get key=a%3 status=found cfd=2 size=3",
		"ts=1.2 gid=3 type=item_get key=a%zz status=found cfd=2 size=3",
		"ts=1.2 gid=3 type=item_store key=a status=stored ttl=0 cfd=2 size=3",
		"ts=1.2 gid=3 type=item_store key=a status=stored cmd=set ttl=99999999999 cfd=2 size=3",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(parsed(texts[i]).kind, LINE_BROKEN);
}

static void a_key_is_at_most_250_bytes(void **state)
{
	char text[1024];

	(void)state;
	for (int length = 250; length <= 251; length++) {
		snprintf(text, sizeof(text), "ts=1.2 gid=3 type=item_get key=%0*d status=found cfd=2 size=3", length,
			 7);
		assert_int_equal(parsed(text).kind, length == 250 ? LINE_GET : LINE_BROKEN);
	}
}

static void a_get(void **state)
{
	struct line line = parsed("ts=1795389701.41939 gid=25 type=item_get key=a%3Ab%FF status=found clsid=1 cfd=24 "
				  "size=20");

	(void)state;
	assert_int_equal(line.kind, LINE_GET);
	assert_int_equal(line.time_us, 1795389701041939);
	assert_int_equal(line.gid, 25);
	assert_int_equal(line.key_length, 4);
	assert_memory_equal(line.key, "a:b\xff", 4);
	assert_true(line.found);
	assert_false(line.tells_tier);
	assert_int_equal(line.connection, 24);
	assert_int_equal(line.size, 20);
	assert_int_equal(line.ttl_s, 0);
	assert_true(parsed("ts=1.000002 gid=1 type=item_get key=k status=found clsid=1 cfd=2 size=0 from=flash")
			    .tells_tier);
	assert_int_equal(parsed("ts=1.000002 gid=1 type=item_get key=k status=expired cfd=2 size=0").time_us, 1000002);
	assert_false(parsed("ts=1.2 gid=1 type=item_get key=k status=expired cfd=2 size=0").found);
}

static void a_store(void **state)
{
	struct line line =
		parsed("ts=1.2 gid=9 type=item_store key=k status=stored cmd=set ttl=100 clsid=1 cfd=3 size=5");

	(void)state;
	assert_int_equal(line.kind, LINE_STORE);
	assert_true(line.found && line.fills);
	assert_int_equal(line.ttl_s, 100);
	line = parsed("ts=1.2 gid=9 type=item_store key=k status=stored cmd=append ttl=0 clsid=1 cfd=3 size=5");
	assert_true(line.found && !line.fills);
	line = parsed("ts=1.2 gid=9 type=item_store key=k status=not_stored cmd=add ttl=0 clsid=1 cfd=3 size=5");
	assert_true(!line.found && line.fills);
	/* A negative rest, and any number as descriptor of what was refused. */
	line = parsed("ts=1.2 gid=9 type=item_store key=k status=stored cmd=set ttl=4294967228 clsid=1 cfd=3 size=5");
	assert_int_equal(line.ttl_s, -1);
	line = parsed(
		"ts=1.2 gid=9 type=item_store key=k status=too_large cmd=set ttl=0 clsid=23 cfd=-272524640 size=0");
	assert_int_equal(line.kind, LINE_STORE);
	assert_int_equal(line.connection, -1);
}

static void a_delete(void **state)
{
	struct line line = parsed("ts=1.2 gid=9 type=deleted key=k cmd=delete clsid=1 size=5");

	(void)state;
	assert_int_equal(line.kind, LINE_DELETED);
	assert_int_equal(line.connection, -1);
	line = parsed("ts=1.2 gid=9 type=item_delete key=k status=not_found cmd=delete ttl=0 clsid=0 cfd=25");
	assert_int_equal(line.kind, LINE_DELETE);
	assert_false(line.found);
	assert_int_equal(line.size, -1);
}

static void an_update(void **state)
{
	static const char *const commands[] = { "incr", "decr", "touch" };
	char text[200];

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		snprintf(text, sizeof(text),
			 "ts=1.2 gid=9 type=item_store key=k status=found cmd=%s ttl=0 clsid=1 cfd=25", commands[i]);
		assert_int_equal(parsed(text).kind, LINE_UPDATE);
		assert_true(parsed(text).found);
	}
}

static void what_tells_nothing_is_ignored(void **state)
{
	(void)state;
	assert_int_equal(parsed("ts=1.2 gid=9 type=item_store key=k status=found cmd=gat ttl=9 clsid=1 cfd=25").kind,
			 LINE_IGNORED);
	/* Flashield's: a look-up of another command, and what item_delete tells too. */
	assert_int_equal(
		parsed("ts=1.2 gid=9 type=item_get key=k status=not_found clsid=0 cfd=2 size=0 from=none cmd=set").kind,
		LINE_IGNORED);
	assert_int_equal(
		parsed("ts=1.2 gid=9 type=item_get key=k status=found clsid=1 cfd=2 size=1 from=dram cmd=get").kind,
		LINE_GET);
	assert_int_equal(parsed("ts=1.2 gid=9 type=deleted key=k cmd=delete clsid=1 size=5 from=flash").kind,
			 LINE_IGNORED);
	assert_int_equal(parsed("ts=1.2 gid=9 type=conn_new rip=127.0.0.1 rport=1 transport=tcp cfd=2").kind,
			 LINE_IGNORED);
}

static void skipped_lines_are_counted(void **state)
{
	struct line line = parsed("skipped=4711");

	(void)state;
	assert_int_equal(line.kind, LINE_SKIPPED);
	assert_int_equal(line.size, 4711);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_makes_no_sense_is_broken),
		cmocka_unit_test(a_key_is_at_most_250_bytes),
		cmocka_unit_test(a_get),
		cmocka_unit_test(a_store),
		cmocka_unit_test(a_delete),
		cmocka_unit_test(an_update),
		cmocka_unit_test(what_tells_nothing_is_ignored),
		cmocka_unit_test(skipped_lines_are_counted),
	};

	return cmocka_run_group_tests_name("record: lines", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The canvas' edges, and every view in every size. */
#include "tests/unit/tools/top/top_test.h"

#include "tools/top/keys.h"
#include "tools/top/options.h"
#include "tools/top/screen.h"
#include "tools/top/term.h"

static const char *const addresses[] = { "127.0.0.1:1", "/a/rather/long/path/of/a/socket.sock" };

static struct canvas canvas;

/* The row as text; other glyphs than ASCII are '^'. */
static const char *row_text(int row)
{
	static char text[CANVAS_MOST + 1];

	for (int i = 0; i < canvas.columns; i++) {
		uint32_t glyph = canvas.cells[row * canvas.columns + i].glyph;

		text[i] = glyph < 0x80 ? (char)glyph : '^';
	}
	text[canvas.columns] = 0;
	return text;
}

static bool shows(const char *text)
{
	for (int row = 0; row < canvas.rows; row++)
		if (strstr(row_text(row), text))
			return true;
	return false;
}

static int fresh(void **state)
{
	(void)state;
	canvas_init(&canvas, true);
	canvas_resize(&canvas, 5, 20);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	canvas_fini(&canvas);
	return 0;
}

static void nothing_is_drawn_outside_of_a_pane(void **state)
{
	struct pane all = canvas_pane(&canvas), pane = pane_part(&all, 1, 5, 2, 6);
	const struct bar_part parts[BAR_PARTS] = {
		{ 1, STYLE_PLAIN }, { 1, STYLE_PLAIN }, { 1, STYLE_PLAIN }, { 1, STYLE_PLAIN }
	};
	const float values[] = { 1, 2, NAN, 4 };

	(void)state;
	for (int row = -2; row < 6; row++) {
		pane_text(&pane, row, -3, STYLE_PLAIN, "0123456789abcdef");
		pane_right(&pane, row, 40, STYLE_PLAIN, "0123456789abcdef0123456789abcdef0123456789");
		pane_bar(&pane, row, -4, 30, STYLE_PLAIN, 1);
		pane_bar(&pane, row, 2, -5, STYLE_PLAIN, 1);
		pane_parts(&pane, row, -4, 30, parts);
		pane_history(&pane, row, -4, 30, 9, STYLE_PLAIN, values, 4, 4);
		pane_title(&pane, row, 100, "a title that is too long");
		pane_fill(&pane, row, STYLE_EDGE);
	}
	for (int row = 0; row < canvas.rows; row++)
		for (int column = 0; column < canvas.columns; column++) {
			bool inside = row >= 1 && row < 3 && column >= 5 && column < 11;

			assert_int_equal(canvas.cells[row * canvas.columns + column].style,
					 inside ? STYLE_EDGE : STYLE_PLAIN);
		}
}

static void a_part_never_leaves_its_pane(void **state)
{
	struct pane all = canvas_pane(&canvas), part = pane_part(&all, 3, 15, 100, 100);

	(void)state;
	assert_int_equal(part.rows, 2);
	assert_int_equal(part.columns, 5);
	part = pane_part(&all, -1, -1, -1, -1);
	assert_int_equal(part.rows, 0);
	part = pane_part(&all, 90, 90, 3, 3);
	assert_int_equal(part.rows, 0);
	assert_int_equal(part.columns, 0);
}

static void a_plain_terminal_gets_ascii_alone(void **state)
{
	const struct bar_part parts[BAR_PARTS] = {
		{ 3, STYLE_PLAIN }, { 2, STYLE_PLAIN }, { 1, STYLE_PLAIN }, { 4, STYLE_PLAIN }
	};
	const float values[] = { 0, 1, 2, 3, 4 };
	struct pane all;

	(void)state;
	canvas.utf8 = false;
	all = canvas_pane(&canvas);
	pane_title(&all, 0, 20, "T\x1b");
	pane_bar(&all, 1, 0, 20, STYLE_PLAIN, 0.52);
	pane_parts(&all, 2, 0, 20, parts);
	pane_history(&all, 3, 0, 6, 1, STYLE_PLAIN, values, 5, 4);
	assert_string_equal(row_text(0), "T? -----------------");
	assert_string_equal(row_text(1), "##########-.........");
	assert_string_equal(row_text(2), "######++++oo........");
	assert_string_equal(row_text(3), " _.-+#              ");
}

static void bars_of_damaged_fractions(void **state)
{
	static const double fractions[] = { NAN, -1, 0, 0.0001, 2, INFINITY };
	struct pane all = canvas_pane(&canvas);

	(void)state;
	canvas.utf8 = false;
	for (size_t i = 0; i < 6; i++) {
		pane_bar(&all, 0, 0, 10, STYLE_PLAIN, fractions[i]);
		assert_memory_equal(row_text(0), i < 3 ? ".........." : i == 3 ? "#........." : "##########", 10);
	}
}

/* A model of two servers of which one has said something, and figures that are as large as they get. */
static struct model *a_model(double value)
{
	static const struct access plain;
	struct model *model = model_create(&plain, addresses, 2, SECOND_US);

	for (int round = 1; round <= 3; round++) {
		struct server *server = &model->servers[0];

		a_sample(&server->peer.sample, round);
		for (int i = 0; i < FIELD_COUNT; i++)
			if (i != FIELD_pid && i != FIELD_uptime)
				server->peer.sample.value[i] = value * round;
		for (int i = 0; i < TIMINGS; i++)
			for (int j = 0; j < TIMING_PARTS; j++)
				server->peer.sample.timing[i][j] = value * round;
		for (int i = 0; i < REPORTS; i++)
			server->peer.sample.has[i] = true;
		give(&server->peer.sample, REPORT_APPS, "shop:get_count", "1");
		give(&server->peer.sample, REPORT_HOTKEYS, "requests:1m:total", "100");
		give(&server->peer.sample, REPORT_HOTKEYS, "requests:1m:seconds", "10");
		give(&server->peer.sample, REPORT_HOTKEYS, "requests:1m:1",
		     "key=hot%20one requests=50 bytes=0 reads=0");
		give(&server->peer.sample, REPORT_HOTKEYS, "bytes:1m:1",
		     "key=large requests=1e300 bytes=1e300 reads=1");
		give(&server->peer.sample, REPORT_HOTKEYS, "reads:10m:20", "hash=00ff requests=1 bytes=1 reads=1");
		give(&server->peer.sample, REPORT_SLOW, "2",
		     "at=1795727331 cmd=get status=found from=flash key=a%20slow%20one total_us=25000 together=3 peer=here");
		give(&server->peer.sample, REPORT_SLOW, "1", "at=1e300 cmd=set hash=00ff total_us=1e300 queue_us=x");
		give(&server->peer.sample, REPORT_CONTENTS, "(all):dram:objects", "2000");
		give(&server->peer.sample, REPORT_CONTENTS, "(all):dram:size", "64=500 128=1500 more=0");
		give(&server->peer.sample, REPORT_CONTENTS, "(all):dram:age", "10s=1e300 earlier=1");
		give(&server->peer.sample, REPORT_CONTENTS, "(all):flash:ttl", "10s=0 never=0");
		give(&server->peer.sample, REPORT_CONTENTS, "shop:dram:bytes", "1048576");
		give(&server->peer.sample, REPORT_CONTENTS, "feed:flash:bytes", "1e300");
		give(&server->peer.sample, REPORT_LIMITS, "shop:dram_bytes", "3145728");
		give(&server->peer.sample, REPORT_LIMITS, "shop:dram_floor", "2097152");
		give(&server->peer.sample, REPORT_LIMITS, "shop:dram_ceiling", "none");
		give(&server->peer.sample, REPORT_LIMITS, "feed:write_bytes", "1e300");
		give(&server->peer.sample, REPORT_APPS, "a-name-that-is-longer-than-its-column:get_count", "1");
		strcpy(server->peer.sample.reason,
		       "a reason that is longer than a narrow terminal has columns, by far");
		server->peer.state = PEER_IDLE;
		strcpy(model->servers[1].peer.error, "Connection refused");
		model->in_round = true;
		assert_true(model_step(model, server, true));
	}
	return model;
}

static void every_view_in_every_size(void **state)
{
	static const double values[] = { NAN, 0, 1, 1e6, 1e15, 1e300 };
	static const int sizes[][2] = { { 1, 1 },   { 2, 3 },   { 3, 80 },   { 10, 30 },
					{ 24, 80 }, { 24, 10 }, { 60, 200 }, { 100, 400 } };

	(void)state;
	for (size_t v = 0; v < sizeof(values) / sizeof(values[0]); v++) {
		struct model *model = a_model(values[v]);

		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			for (int view = 0; view < VIEWS * 2 * 3; view++) {
				struct display display = { .view = view % VIEWS,
							   .help = view / VIEWS % 2,
							   .chosen = (unsigned)(view / VIEWS / 2),
							   .scroll = 7,
							   .paused = view & 1,
							   .interval_us = SECOND_US };

				canvas_resize(&canvas, sizes[i][0], sizes[i][1]);
				screen_draw(&canvas, model, &display, 0, "12:34:56");
			}
		model_destroy(model);
	}
}

static void what_24_rows_of_80_columns_show(void **state)
{
	struct model *model = a_model(1000);
	struct display display = { .chosen = 1, .interval_us = SECOND_US };

	(void)state;
	canvas_resize(&canvas, 24, 80);
	screen_draw(&canvas, model, &display, 0, "12:34:56");
	assert_true(shows("127.0.0.1:1"));
	assert_true(shows("12:34:56"));
	assert_true(shows("every 1s"));
	assert_true(shows("Hit ratio"));
	assert_true(shows("50.0 %"));
	assert_true(shows("DRAM hit"));
	assert_true(shows("q quit"));
	display.chosen = 0;
	display.view = VIEW_SERVERS;
	screen_draw(&canvas, model, &display, 0, "12:34:56");
	assert_true(shows("all of 2 servers"));
	assert_true(shows("Connection refused"));
	display.view = VIEW_KEYS;
	screen_draw(&canvas, model, &display, 0, "12:34:56");
	assert_true(shows("Keys by requests, last minute"));
	assert_true(shows("hot%20one"));
	assert_true(shows("50.0 %")); /* 50 of 100 */
	display.window = HOT_TEN_MINUTES;
	screen_draw(&canvas, model, &display, 0, "12:34:56");
	assert_true(shows("Keys by requests, last 10 minutes"));
	assert_true(shows("none were asked for"));
	display.view = VIEW_SLOW;
	screen_draw(&canvas, model, &display, 0, "12:34:56");
	assert_true(shows("get found flash"));
	assert_true(shows("25.0 ms"));
	display.view = VIEW_CONTENTS;
	canvas_resize(&canvas, 24, 80);
	screen_draw(&canvas, model, &display, 0, "12:34:56");
	assert_true(shows("9Contents 0Limits"));
	assert_true(shows("64     25 %"));
	assert_true(shows("128    75 %"));
	assert_true(shows("2.00 k"));
	assert_true(shows("1.00 MiB"));
	display.view = VIEW_LIMITS;
	canvas_resize(&canvas, 24, 80);
	screen_draw(&canvas, model, &display, 0, "12:34:56");
	assert_true(shows("shop"));
	assert_true(shows("3.00 MiB 2.00 MiB        -"));
	canvas_resize(&canvas, 24, 110);
	screen_draw(&canvas, model, &display, 0, "12:34:56");
	assert_true(shows("9 Contents  0 Limits"));
	assert_true(shows("refused"));
	model_destroy(model);
}

static void keys_change_what_they_say(void **state)
{
	struct display display = { .interval_us = SECOND_US };

	(void)state;
	assert_int_equal(keys_take(&display, 'q', 2, 3), KEY_QUIT);
	assert_int_equal(keys_take(&display, 'x', 2, 3), KEY_NOTHING);
	assert_int_equal(keys_take(&display, '0', 2, 3), KEY_DRAW);
	assert_int_equal(display.view, VIEW_LIMITS);
	assert_int_equal(keys_take(&display, 'r', 2, 3), KEY_RESET);
	assert_int_equal(keys_take(&display, TERM_RESIZED, 2, 3), KEY_DRAW);
	keys_take(&display, '5', 2, 3);
	assert_int_equal(display.view, VIEW_APPS);
	for (int view = VIEW_APPS; view < VIEWS; view++)
		keys_take(&display, '\t', 2, 3);
	assert_int_equal(display.view, VIEW_OVERVIEW);
	keys_take(&display, TERM_BACKTAB, 2, 3);
	assert_int_equal(display.view, VIEWS - 1);
	assert_int_equal(keys_take(&display, 'w', 2, 3), KEY_DRAW);
	assert_int_equal(display.window, HOT_TEN_MINUTES);
	keys_take(&display, 'w', 2, 3);
	assert_int_equal(display.window, HOT_MINUTE);
	for (int i = 0; i < 3; i++)
		keys_take(&display, 'n', 2, 3);
	assert_int_equal(display.chosen, 0);
	keys_take(&display, 'n', 1, 3); /* a single server is always the chosen one */
	assert_int_equal(display.chosen, 0);
	for (int i = 0; i < 20; i++)
		keys_take(&display, TERM_DOWN, 2, 3);
	assert_int_equal(display.scroll, 2);
	for (int i = 0; i < 3; i++)
		keys_take(&display, TERM_PAGE_UP, 2, 0);
	assert_int_equal(display.scroll, 0);
	for (int i = 0; i < 20; i++)
		keys_take(&display, '-', 2, 3);
	assert_int_equal(display.interval_us, INTERVAL_LEAST_US);
	for (int i = 0; i < 20; i++)
		keys_take(&display, '+', 2, 3);
	assert_int_equal(display.interval_us, INTERVAL_MOST_US);
	keys_take(&display, 'h', 2, 3);
	assert_true(display.help);
	keys_take(&display, '2', 2, 3); /* any key leaves it, and does nothing else */
	assert_false(display.help);
	assert_int_equal(display.view, VIEWS - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, clean)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_is_drawn_outside_of_a_pane), TEST(a_part_never_leaves_its_pane),
		TEST(a_plain_terminal_gets_ascii_alone),  TEST(bars_of_damaged_fractions),
		TEST(every_view_in_every_size),           TEST(what_24_rows_of_80_columns_show),
		TEST(keys_change_what_they_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

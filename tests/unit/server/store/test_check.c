/* SPDX-License-Identifier: BSD-3-Clause */
/* --check-config: a store that would not open is told with the reason of a start, and nothing on disk changes. */
#include "server/store/check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/server/store/harness.h"

static char reason[256], path[120];

static struct store_config good_config(void)
{
	struct store_config config;

	store_config_init(&config);
	config.memory_bytes = 16u << 20;
	config.flash_path = path;
	config.flash_bytes = 64u << 20;
	snprintf(path, sizeof(path), "%.60s/check-flash-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp",
		 (int)getpid());
	return config;
}

/* A start must fail with the same words; it ends before it makes the file. */
static void expect_refused(const struct store_config *config, int code)
{
	char started[256] = "";
	struct store *store;

	*reason = 0;
	assert_int_equal(store_check(config, reason), code);
	assert_int_equal(store_open(&store, config, started), code);
	assert_string_equal(reason, started);
	unlink(path);
}

static void what_a_start_refuses_is_refused(void **state)
{
	struct store_config config = good_config();

	(void)state;
	config.segment_bytes = 8u << 20;
	expect_refused(&config, FS_ERANGE);
	config = good_config();
	config.flash_bytes = 0;
	expect_refused(&config, FS_ERANGE);
	config = good_config();
	config.flash_path = "/nonexistent/flash";
	expect_refused(&config, FS_ESYS);
	config = good_config();
	config.memory_bytes = 1u << 20;
	config.segment_bytes = 256u << 10;
	expect_refused(&config, FS_ERANGE);
	assert_non_null(strstr(reason, "is too little"));
	config = good_config();
	config.region_dir = "/nonexistent/folder";
	expect_refused(&config, FS_ESYS);
	assert_non_null(strstr(reason, "/nonexistent/folder"));
}

static void a_foreign_file_is_told(void **state)
{
	struct store_config config = good_config();
	FILE *file = fopen(path, "w");

	(void)state;
	assert_non_null(file);
	fputs("somebody's letters", file);
	fclose(file);
	assert_int_equal(store_check(&config, reason), FS_EFOREIGN);
	assert_non_null(strstr(reason, "not a cache"));
	config.takes_extstore = true; /* which it isn't */
	expect_refused(&config, FS_EFOREIGN);
}

static void nothing_is_made(void **state)
{
	struct store_config config = good_config();
	struct stat st;

	(void)state;
	assert_int_equal(store_check(&config, reason), FS_OK);
	assert_int_equal(stat(path, &st), -1);
	config.memory_bytes = 4ull << 30; /* not opened */
	assert_int_equal(store_check(&config, reason), FS_OK);
	config.flash_path = NULL;
	config.memory_bytes = 16u << 20;
	assert_int_equal(store_check(&config, reason), FS_OK);
}

static void a_folder_for_the_region_stays_empty(void **state)
{
	char folder[] = "/dev/shm/flashield-check-XXXXXX";
	struct store_config config = good_config();

	(void)state;
	assert_non_null(mkdtemp(folder));
	config.region_dir = folder;
	*reason = 0;
	assert_int_equal(store_check(&config, reason), FS_OK);
	assert_string_equal(reason, "");
	assert_int_equal(rmdir(folder), 0);
}

static void a_model_that_is_none_is_told(void **state)
{
	const struct store_config config = good_config();
	struct store_models models = { .given = "/nonexistent/model.json" };

	(void)state;
	assert_int_equal(store_check_model(&config, &models, reason), FS_ESYS);
	assert_non_null(strstr(reason, "No such file"));
	models.given = "/dev/null";
	assert_int_equal(store_check_model(&config, &models, reason), FS_EINVAL);
	models.given = NULL;
	assert_int_equal(store_check_model(&config, &models, reason), FS_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_start_refuses_is_refused),
		cmocka_unit_test(a_foreign_file_is_told),
		cmocka_unit_test(nothing_is_made),
		cmocka_unit_test(a_folder_for_the_region_stays_empty),
		cmocka_unit_test(a_model_that_is_none_is_told),
	};

	return cmocka_run_group_tests_name("store: options checked", tests, NULL, NULL);
}

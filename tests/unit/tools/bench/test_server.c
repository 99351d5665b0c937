/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers under test: what is refused, what becomes of programs that fail, and a memcached where there is
 * one. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/bench/server_internal.h"

static char directory[] = "/tmp/flashield-server-XXXXXX";
static struct bench_options options;
static struct bench bench = { .options = &options };
static struct server server;

static int begin(void **state)
{
	(void)state;
	options = (struct bench_options){
		.flashield = "/nowhere/flashield",
		.memcached = "memcached",
		.directory = directory,
		.server_cpu = -1,
		.load_cpu = -1,
	};
	return 0;
}

static unsigned files_left(void)
{
	DIR *opened = opendir(directory);
	unsigned count = 0;

	assert_non_null(opened);
	while (readdir(opened))
		count++;
	closedir(opened);
	return count - 2; /* . and .. */
}

/* A program of a line of shell, in the place of memcached. */
static void program(char path[64], const char *line)
{
	FILE *out;

	snprintf(path, 64, "%s.sh", directory);
	out = fopen(path, "w");
	assert_non_null(out);
	fprintf(out, "#!/bin/sh\n%s\n", line);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, 0700), 0);
	options.memcached = path;
}

static void a_program_that_is_not_there_is_told(void **state)
{
	struct server_spec spec = { .kind = SERVER_FLASHIELD, .memory_mb = 64, .flash_bytes = 1 << 20 };

	(void)state;
	assert_int_equal(server_start(&server, &bench, &spec), FS_ENOTFOUND);
	assert_int_equal(files_left(), 0);
}

static void a_program_that_ends_or_never_listens_is_told(void **state)
{
	struct server_spec spec = { .kind = SERVER_MEMCACHED, .memory_mb = 64 };
	char path[64];

	(void)state;
	program(path, "echo no, thank you; exit 3");
	assert_int_equal(server_start(&server, &bench, &spec), FS_ESYS);
	assert_int_equal(server.pid, 0);
	assert_int_equal(files_left(), 0);
	program(path, "kill -9 $$");
	assert_int_equal(server_start(&server, &bench, &spec), FS_ESYS);
	unlink(path);
}

static void a_command_that_is_too_long_is_refused(void **state)
{
	static char word[COMMAND_BYTES];
	const char *const long_word[] = { word, NULL }, *many[COMMAND_WORDS + 1];
	struct server_spec spec = { .kind = SERVER_MEMCACHED, .memory_mb = 64, .extra = long_word };
	char deep[600];

	(void)state;
	memset(word, 'x', sizeof(word) - 1);
	assert_int_equal(server_start(&server, &bench, &spec), FS_EINVAL);
	for (unsigned i = 0; i < COMMAND_WORDS; i++)
		many[i] = "-v";
	many[COMMAND_WORDS] = NULL;
	spec.extra = many;
	assert_int_equal(server_start(&server, &bench, &spec), FS_EINVAL);
	memset(deep, 'd', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	options.directory = deep;
	spec.extra = NULL;
	assert_int_equal(server_start(&server, &bench, &spec), FS_EINVAL);
	assert_int_equal(files_left(), 0);
}

/* What comes before and behind the user that only root needs. */
static void assert_command(const struct server *of, const char *before, const char *behind)
{
	struct command command;
	char text[COMMAND_BYTES], expected[COMMAND_BYTES];

	snprintf(expected, sizeof(expected), "%s%s %s", before, geteuid() == 0 ? " -u root" : "", behind);
	assert_int_equal(command_build(&command, of, &options), 0);
	command_describe(&command, text, sizeof(text));
	assert_string_equal(text, expected);
	assert_null(command.words[command.count]);
}

static void commands_say_what_the_spec_says(void **state)
{
	const char *const extra[] = { "--admission", "all", NULL };
	struct server of = { .port = 7, .flash_path = "/f" };

	(void)state;
	of.spec = (struct server_spec){ .kind = SERVER_FLASHIELD,
					.memory_mb = 256,
					.threads = 2,
					.extra = extra,
					.flash_bytes = 1 << 30,
					.wrapper = " perf  stat " };
	assert_command(&of, "perf stat /nowhere/flashield -l 127.0.0.1 -p 7 -U 0 -m 256 -t 2 -c 2048",
		       "--metrics-listen=off --flash-path /f --flash-size 1073741824 --admission all");
	of.spec = (struct server_spec){
		.kind = SERVER_EXTSTORE, .memory_mb = 64, .max_connections = 10, .flash_bytes = 1 << 30
	};
	assert_command(&of, "memcached -l 127.0.0.1 -p 7 -U 0 -m 64 -t 1 -c 10",
		       "-o ext_page_size=16,ext_path=/f:1024m,ext_item_size=128,ext_item_age=0,ext_threads=1");
}

static void a_slow_drive_is_of_the_environment(void **state)
{
	struct server of = { .port = 7, .flash_path = "/f", .drive_path = "/d" };

	(void)state;
	options.slowdrive = "/s.so";
	of.spec = (struct server_spec){
		.kind = SERVER_FLASHIELD, .memory_mb = 64, .flash_bytes = 1 << 20, .slow_drive = true
	};
	assert_command(&of,
		       "LD_PRELOAD=/s.so SLOWDRIVE_FILE=/f SLOWDRIVE_CONTROL=/d /nowhere/flashield "
		       "-l 127.0.0.1 -p 7 -U 0 -m 64 -t 1 -c 2048",
		       "--metrics-listen=off --flash-path /f --flash-size 1048576");
}

/* As sd_notify does for an abstract name. */
static void tell(const struct server *of, const char *message)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t length = strlen(of->watchdog_name);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	assert_int_equal(of->watchdog_name[0], '@');
	memcpy(to.sun_path + 1, of->watchdog_name + 1, length - 1);
	assert_int_equal(sendto(fd, message, strlen(message), 0, (struct sockaddr *)&to,
				(socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
			 strlen(message));
	close(fd);
}

static void a_watchdog_knows_its_food(void **state)
{
	struct server of = { .port = 7, .watchdog_fd = -1 };
	struct command command;
	char text[COMMAND_BYTES], expected[200];

	(void)state;
	assert_true(isnan(server_unfed_seconds(&of)));
	assert_int_equal(watchdog_create(&of), FS_OK);
	of.fed_seconds -= 1000;
	tell(&of, "STATUS=fed by WATCHDOG=1\nNO_WATCHDOG=1");
	assert_true(server_unfed_seconds(&of) >= 1000);
	tell(&of, "STATUS=well\nWATCHDOG=1");
	tell(&of, "STATUS=well");
	assert_true(server_unfed_seconds(&of) < 1000);
	of.spec = (struct server_spec){ .kind = SERVER_FLASHIELD, .memory_mb = 64, .watchdog_seconds = 3 };
	assert_int_equal(command_build(&command, &of, &options), 0);
	command_describe(&command, text, sizeof(text));
	snprintf(expected, sizeof(expected), "NOTIFY_SOCKET=%s WATCHDOG_USEC=3000000 /nowhere/flashield -l ",
		 of.watchdog_name);
	assert_memory_equal(text, expected, strlen(expected));
	watchdog_destroy(&of);
	assert_true(isnan(server_unfed_seconds(&of)));
}

static void a_server_that_ignores_its_slow_drive_is_told(void **state)
{
	struct server_spec spec = {
		.kind = SERVER_EXTSTORE, .memory_mb = 64, .flash_bytes = 128 << 20, .slow_drive = true
	};
	int code;

	(void)state;
	options.slowdrive = "/nowhere/slowdrive.so"; /* the loader warns and goes on without it */
	code = server_start(&server, &bench, &spec);
	if (code == FS_ENOTFOUND)
		skip();
	assert_int_equal(code, FS_ESYS);
	assert_null(server.drive);
	assert_int_equal(files_left(), 0);
}

static void a_memcached_is_started_asked_and_stopped(void **state)
{
	struct server_spec spec = { .kind = SERVER_EXTSTORE, .memory_mb = 64, .flash_bytes = 256 << 20 };
	uint64_t used_ns;
	int code;

	(void)state;
	code = server_start(&server, &bench, &spec);
	if (code == FS_ENOTFOUND)
		skip();
	assert_int_equal(code, 0);
	assert_int_equal(files_left(), 2); /* log and flash */
	assert_true(server_alive(&server));
	assert_int_not_equal(server.version[0], 0);
	assert_true(server_stat(&server, "", "pid") == server.pid);
	assert_true(server_stat(&server, "settings", "maxbytes") == 64 << 20);
	assert_true(server_stat(&server, "", "extstore_limit_maxbytes") == 256 << 20);
	assert_true(isnan(server_stat(&server, "", "no such figure")));
	assert_true(isnan(server_stat(&server, "nonsense", "pid")));
	used_ns = server_cpu_ns(&server);
	assert_true(used_ns > 0);
	server_flush(&server);
	server_drop_cache(&server);
	assert_true(server_cpu_ns(&server) > used_ns);
	assert_true(server_resident_bytes(&server) > 1 << 20);
	assert_true(server_peak_bytes(&server) >= server_resident_bytes(&server));
	assert_int_equal(server_stop(&server), 0);
	assert_false(server_alive(&server));
	assert_int_equal(files_left(), 0);
}

static void a_server_that_died_does_not_stop_cleanly(void **state)
{
	struct server_spec spec = { .kind = SERVER_MEMCACHED, .memory_mb = 64 };
	int code;

	(void)state;
	code = server_start(&server, &bench, &spec);
	if (code == FS_ENOTFOUND)
		skip();
	assert_int_equal(code, 0);
	kill(server.pid, SIGKILL);
	while (server_alive(&server))
		continue;
	assert_true(isnan(server_stat(&server, "", "pid")));
	assert_int_equal(server_stop(&server), FS_ESYS);
	assert_int_equal(files_left(), 0);
}

static int make_directory(void **state)
{
	(void)state;
	return mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_program_that_is_not_there_is_told, begin),
		cmocka_unit_test_setup(a_program_that_ends_or_never_listens_is_told, begin),
		cmocka_unit_test_setup(a_command_that_is_too_long_is_refused, begin),
		cmocka_unit_test_setup(commands_say_what_the_spec_says, begin),
		cmocka_unit_test_setup(a_slow_drive_is_of_the_environment, begin),
		cmocka_unit_test_setup(a_watchdog_knows_its_food, begin),
		cmocka_unit_test_setup(a_server_that_ignores_its_slow_drive_is_told, begin),
		cmocka_unit_test_setup(a_memcached_is_started_asked_and_stopped, begin),
		cmocka_unit_test_setup(a_server_that_died_does_not_stop_cleanly, begin),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}

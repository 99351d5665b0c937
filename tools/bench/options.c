/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/options.h"
#include "conf/version.h"

#include <errno.h>
#include <getopt.h>
#include <libgen.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/common/args.h"

static const char help_head[] =
	"Usage: flashield-bench [OPTION]... [STUDY]...\n"
	"Measures the daemon, and memcached beside it in the same run: starts both, loads them in turns\n"
	"from one thread, and prints medians, ratios and the targets. Without a STUDY the plain ones run.\n"
	"\n"
	"Studies (* plain)\n";

static const char help_options[] =
	"\n"
	"What is measured\n"
	"  --daemon PATH       the daemon  (flashield beside this program)\n"
	"  --memcached PATH    what it is compared with  (memcached in PATH)\n"
	"  --slowdrive PATH    the emulated drive of studies of stress  (slowdrive.so beside this program)\n"
	"  --dir DIR           where flash files are made and removed; a disk with O_DIRECT, no tmpfs\n"
	"                      (/var/tmp)\n"
	"  --cpus S,L          the servers' CPU and the load generator's; \"none\": both unpinned\n"
	"                      (the first two that this process may use)\n"
	"  --rounds N          rounds of alternating measurements, whose medians are reported  (3)\n"
	"  --scale F           1: as the published figures; 0.05: a quick look with shorter runs and\n"
	"                      fewer objects  (1)\n"
	"\n"
	"Output\n"
	"  --json FILE         all samples as JSON, kept for --base; - for standard output in place of\n"
	"                      the tables\n"
	"  --base FILE         compare with this earlier run's JSON\n"
	"  --quiet             no progress\n"
	"  --list              the names of the studies, one per line\n"
	"  --help  --version\n"
	"\n"
	"Of the study device\n"
	"  --path PATH         the file or block device that is OVERWRITTEN\n"
	"  --size BYTES        of it that are used  (a block device: all of it; a file: 4g)\n"
	"  --utilisation F     of the size that holds data, 0.1 to 1  (0.9)\n"
	"  --total BYTES       written per pattern and unit  (the size once)\n"
	"  --overwrite         needed before a block device is touched\n"
	"\n"
	"Sizes take k, m, g, t (powers of 1024).\n"
	"Exit status: 0 measured; 1 a server returned a wrong value; 2 bad usage, a study failed, or\n"
	"interrupted. A missed target is no failure.\n";

enum {
	OPTION_DAEMON = 256,
	OPTION_MEMCACHED,
	OPTION_SLOWDRIVE,
	OPTION_DIR,
	OPTION_CPUS,
	OPTION_ROUNDS,
	OPTION_SCALE,
	OPTION_JSON,
	OPTION_BASE,
	OPTION_QUIET,
	OPTION_LIST,
	OPTION_HELP,
	OPTION_VERSION,
	OPTION_PATH,
	OPTION_SIZE,
	OPTION_UTILISATION,
	OPTION_TOTAL,
	OPTION_OVERWRITE,
};

static const struct option long_options[] = {
	{ "daemon", required_argument, NULL, OPTION_DAEMON },
	{ "memcached", required_argument, NULL, OPTION_MEMCACHED },
	{ "slowdrive", required_argument, NULL, OPTION_SLOWDRIVE },
	{ "dir", required_argument, NULL, OPTION_DIR },
	{ "cpus", required_argument, NULL, OPTION_CPUS },
	{ "rounds", required_argument, NULL, OPTION_ROUNDS },
	{ "scale", required_argument, NULL, OPTION_SCALE },
	{ "json", required_argument, NULL, OPTION_JSON },
	{ "base", required_argument, NULL, OPTION_BASE },
	{ "quiet", no_argument, NULL, OPTION_QUIET },
	{ "list", no_argument, NULL, OPTION_LIST },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "path", required_argument, NULL, OPTION_PATH },
	{ "size", required_argument, NULL, OPTION_SIZE },
	{ "utilisation", required_argument, NULL, OPTION_UTILISATION },
	{ "total", required_argument, NULL, OPTION_TOTAL },
	{ "overwrite", no_argument, NULL, OPTION_OVERWRITE },
	{ NULL, 0, NULL, 0 },
};

/* ---- what is told and left ------------------------------------------------------------------- */

static _Noreturn void tell_help(const struct study *studies)
{
	fputs(help_head, stdout);
	for (const struct study *study = studies; study->name; study++)
		printf("  %-15s %c %s\n", study->name, study->plain ? '*' : ' ', study->text);
	fputs(help_options, stdout);
	exit(0);
}

static _Noreturn void tell_list(const struct study *studies)
{
	for (const struct study *study = studies; study->name; study++)
		puts(study->name);
	exit(0);
}

/* ---- defaults -------------------------------------------------------------------------------- */

/* A file that was built with this program; its bare name where that isn't known. */
static const char *built_beside(const char *name, char path[PATH_MAX + 32])
{
	char self[PATH_MAX + 1] = "";

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		return name;
	snprintf(path, PATH_MAX + 32, "%s/%s", dirname(self), name);
	return path;
}

/* The first two CPUs of this process; with one alone the scheduler had better place both. */
static void choose_cpus(struct bench_options *options)
{
	cpu_set_t allowed;
	int found[2] = { -1, -1 }, count = 0;

	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		CPU_ZERO(&allowed);
	for (int cpu = 0; cpu < CPU_SETSIZE && count < 2; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			found[count++] = cpu;
	options->server_cpu = count == 2 ? found[0] : -1;
	options->load_cpu = count == 2 ? found[1] : -1;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int parse_cpu(const char *text)
{
	cpu_set_t allowed;
	int cpu = (int)arg_count("cpus", text, 0, CPU_SETSIZE - 1);

	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && !CPU_ISSET(cpu, &allowed))
		arg_die("--cpus: this process may not run on CPU %d", cpu);
	return cpu;
}

static void parse_cpus(struct bench_options *options, const char *text)
{
	char server[16];
	const char *comma = strchr(text, ',');

	options->server_cpu = options->load_cpu = -1;
	if (strcmp(text, "none") == 0)
		return;
	if (!comma || (size_t)(comma - text) >= sizeof(server))
		arg_die("--cpus: \"%s\" is not two CPUs as in 0,1, nor none", text);
	snprintf(server, sizeof(server), "%.*s", (int)(comma - text), text);
	options->server_cpu = parse_cpu(server);
	options->load_cpu = parse_cpu(comma + 1);
}

static void set_device(struct bench_options *options, int option, const char *name, const char *text)
{
	switch (option) {
	case OPTION_PATH:
		options->device_path = text;
		break;
	case OPTION_SIZE:
		options->device_bytes = arg_size(name, text, 1 << 20, 1ull << 50);
		break;
	case OPTION_UTILISATION:
		options->device_utilisation = arg_real(name, text, 0.1, 1);
		break;
	case OPTION_TOTAL:
		options->device_total = arg_size(name, text, 1 << 20, 1ull << 50);
		break;
	default:
		options->device_destroy = true;
	}
}

static void set_option(struct bench_options *options, int option, const char *text)
{
	const char *name = long_options[option - OPTION_DAEMON].name;

	switch (option) {
	case OPTION_DAEMON:
		options->flashield = text;
		break;
	case OPTION_MEMCACHED:
		options->memcached = text;
		break;
	case OPTION_SLOWDRIVE:
		options->slowdrive = text;
		break;
	case OPTION_DIR:
		options->directory = text;
		break;
	case OPTION_CPUS:
		parse_cpus(options, text);
		break;
	case OPTION_ROUNDS:
		options->rounds = (unsigned)arg_count(name, text, 1, 99);
		break;
	case OPTION_SCALE:
		options->scale = arg_real(name, text, 1e-4, 100);
		break;
	case OPTION_JSON:
		options->json_path = text;
		break;
	case OPTION_BASE:
		options->base_path = text;
		break;
	case OPTION_QUIET:
		options->quiet = true;
		break;
	default:
		set_device(options, option, name, text);
	}
}

/* Its name, or the first part of it: "stress" is all of "stress_..." */
static bool is_named(const struct study *study, const char *name)
{
	size_t length = strlen(name);

	return strncmp(study->name, name, length) == 0 && (study->name[length] == '\0' || study->name[length] == '_');
}

static void want_study(const struct study *studies, bool *wanted, const char *name)
{
	char names[512] = "";
	bool found = false;

	for (size_t i = 0; studies[i].name; i++) {
		size_t used = strlen(names);

		if (is_named(&studies[i], name))
			wanted[i] = found = true;
		snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "", studies[i].name);
	}
	if (!found)
		arg_die("\"%s\" is no study; there are: %s", name, names);
}

static void check(const struct bench_options *options)
{
	if (access(options->flashield, X_OK) != 0)
		arg_die("--daemon: %s: %s", options->flashield, strerror(errno));
	if (access(options->directory, W_OK | X_OK) != 0)
		arg_die("--dir: %s: %s", options->directory, strerror(errno));
}

void bench_options_parse(int argc, char **argv, const struct study *studies, bool *wanted,
			 struct bench_options *options)
{
	static char daemon_path[PATH_MAX + 32], drive_path[PATH_MAX + 32];
	int option;

	*options = (struct bench_options){
		.flashield = built_beside("flashield", daemon_path),
		.memcached = "memcached",
		.slowdrive = built_beside("slowdrive.so", drive_path),
		.directory = "/var/tmp",
		.rounds = 3,
		.scale = 1,
		.device_utilisation = 0.9,
	};
	choose_cpus(options);
	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (option == '?')
			arg_die("see --help");
		if (option == OPTION_HELP)
			tell_help(studies);
		if (option == OPTION_LIST)
			tell_list(studies);
		if (option == OPTION_VERSION) {
			puts("flashield-bench (Flashield) " FS_VERSION);
			exit(0);
		}
		set_option(options, option, optarg);
	}
	for (size_t i = 0; studies[i].name; i++)
		wanted[i] = optind == argc && studies[i].plain;
	for (int i = optind; i < argc; i++)
		want_study(studies, wanted, argv[i]);
	check(options);
}

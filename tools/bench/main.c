/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flashield-bench: reads the options, runs the studies one after the other, prints each one's table when it
 * is there, then the targets and the comparison, and keeps all samples as JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/interrupt.h"
#include "tools/bench/machine.h"
#include "tools/bench/options.h"
#include "tools/bench/table9.h"
#include "tools/common/args.h"

#define STUDY_ROW(name, plain, text) { #name, plain, text, study_##name },
static const struct study studies[] = { STUDY_TABLE(STUDY_ROW){ NULL, false, NULL, NULL } };
#undef STUDY_ROW
enum { STUDIES = sizeof(studies) / sizeof(studies[0]) };

/* A run takes minutes: a file that can't be written is found out before it. */
static void try_json(const char *path)
{
	int fd;

	if (!path || strcmp(path, "-") == 0)
		return;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || close(fd) != 0)
		arg_die("--json: %s: %s", path, strerror(errno));
}

static struct figures *read_base(const char *path)
{
	char error[256];
	struct figures *base = figures_read_json(path, error);

	if (!base)
		arg_die("--base: %s", error);
	return base;
}

static void write_json(const struct bench *bench)
{
	const char *path = bench->options->json_path;

	if (path && figures_write_json(bench->figures, path) != 0)
		arg_die("--json: %s: %s", path, strerror(errno));
}

/* Tables go to out, NULL for none; the JSON is written after each study, lest a later one take it along. */
static int run_study(struct bench *bench, const struct study *study, FILE *out)
{
	int code;

	bench_progress(bench, "%s: %s", study->name, study->text);
	code = study->run(bench);
	if (bench_interrupted())
		figures_note(bench->figures, study->name, "INTERRUPTED: these figures are not complete.");
	else if (code != FS_OK) {
		fprintf(stderr, "flashield-bench: study %s failed: %s\n", study->name, fs_strerror(code));
		figures_note(bench->figures, study->name, "FAILED (%s): these figures are not complete.",
			     fs_strerror(code));
	}
	if (out) {
		figures_print_study(bench->figures, study->name, out);
		write_json(bench);
	}
	return code;
}

static int run_studies(struct bench *bench, const bool *wanted, FILE *out)
{
	int status = 0;

	for (size_t i = 0; studies[i].name && !bench_interrupted(); i++) {
		if (!wanted[i])
			continue;
		switch (run_study(bench, &studies[i], out)) {
		case FS_OK:
			break;
		case FS_ECORRUPT:
			status = EXIT_WRONG;
			break;
		default:
			status = status ? status : EXIT_TROUBLE;
		}
	}
	if (!bench_interrupted())
		return status;
	fprintf(stderr, "flashield-bench: interrupted\n");
	figures_about(bench->figures, "INTERRUPTED", "not all studies were run to their end");
	return EXIT_TROUBLE;
}

int main(int argc, char **argv)
{
	bool wanted[STUDIES] = { false };
	struct bench_options options;
	struct bench bench = { .options = &options };
	struct figures *base = NULL;
	FILE *out;
	int status;

	bench_options_parse(argc, argv, studies, wanted, &options);
	if (options.base_path)
		base = read_base(options.base_path);
	try_json(options.json_path);
	out = options.json_path && strcmp(options.json_path, "-") == 0 ? NULL : stdout;
	bench.figures = figures_create();
	interrupt_init();

	machine_about(&bench);
	if (out)
		figures_print_about(bench.figures, out);
	status = run_studies(&bench, wanted, out);
	table9(bench.figures);
	if (out) {
		figures_print_study(bench.figures, "table9", out);
		figures_print_targets(bench.figures, out);
		if (base)
			figures_print_comparison(bench.figures, base, out);
	}
	write_json(&bench);
	if (out && options.json_path)
		fprintf(out, "\nAll samples: %s\n", options.json_path);

	figures_destroy(base);
	figures_destroy(bench.figures);
	return status;
}

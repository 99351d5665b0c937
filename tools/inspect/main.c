/* SPDX-License-Identifier: BSD-3-Clause */
/* flashield-inspect: opens the flash, runs one command on it. */
#include <stdio.h>

#include "tools/common/args.h"
#include "tools/inspect/commands.h"

static int run(const struct inspect_options *options, const struct flash *flash)
{
	switch (options->command) {
	case COMMAND_LIST:
		return command_list(options, flash);
	case COMMAND_VERIFY:
		return command_verify(options, flash);
	case COMMAND_FIND:
		return command_find(options, flash);
	case COMMAND_DUMP:
		return command_dump(options, flash);
	case COMMAND_SEGMENT:
		return command_segment(options, flash);
	case COMMAND_STATE:
		return command_state(options, flash, "");
	}
	return EXIT_TROUBLE;
}

int main(int argc, char **argv)
{
	struct inspect_options options;
	char problem[FLASH_PROBLEM_BYTES];
	struct flash flash;
	int status;

	inspect_options_parse(argc, argv, &options);
	status = flash_open(&flash, options.path, problem);
	if (status == 0)
		status = run(&options, &flash);
	else if (options.command == COMMAND_STATE && flash.bytes > 0)
		status = command_state(&options, &flash, problem);
	else
		fprintf(stderr, "flashield-inspect: %s: %s\n", options.path, problem);
	flash_close(&flash);
	if (fflush(stdout) != 0 || ferror(stdout))
		arg_die("the output can't be written");
	return status;
}

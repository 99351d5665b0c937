/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the tables of the bash completion, so that they are made with the package. */
#include "conf/conf.h"

int main(void)
{
	conf_print_completion(stdout);
	return fflush(stdout) == 0 ? 0 : 1;
}

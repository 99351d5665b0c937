/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the sample file, so that it can be made and checked without the daemon. */
#include "conf/conf.h"

int main(void)
{
	conf_print_sample(stdout);
	return fflush(stdout) == 0 ? 0 : 1;
}

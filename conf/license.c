/* SPDX-License-Identifier: BSD-3-Clause */
/* The text of -i: the file LICENSE itself, which the assembler reads from the top folder, where make runs. */
#include "conf/conf.h"
#include "conf/version.h"

extern const char conf_license[] __attribute__((visibility("hidden")));

__asm__(".pushsection .rodata\n"
	"conf_license:\n"
	".incbin \"LICENSE\"\n"
	".byte 0\n"
	".popsection\n");

void conf_print_license(FILE *out)
{
	fprintf(out,
		"flashield %s\n\n%s\nThe libraries it is linked with have licenses of their own, which Debian keeps in "
		"/usr/share/doc.\n",
		FS_VERSION, conf_license);
}

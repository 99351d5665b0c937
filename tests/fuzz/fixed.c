/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/fixed.h"

#include <libaio.h>
#include <unistd.h>

#include "base/rng.h"

#define WALL_SECONDS 1800000000
#define CONTEXTS 16

/* The linker has the daemon call these (--wrap). */
int64_t __wrap_clk_wall_seconds(void);
void __wrap_rng_secret(void *bytes, size_t length);
int __real_io_setup(int size, io_context_t *context);
int __real_io_destroy(io_context_t context);
int __wrap_io_setup(int size, io_context_t *context);
int __wrap_io_destroy(io_context_t context);
int __real_unlink(const char *path);
int __wrap_unlink(const char *path);

/* ---- time and chance ------------------------------------------------------------------------- */

static int64_t wall_seconds = WALL_SECONDS;
static struct rng secret;

void fixed_reset(void)
{
	wall_seconds = WALL_SECONDS;
	rng_init(&secret, 0);
}

void fixed_reseed(uint64_t seed)
{
	rng_init(&secret, seed);
}

void fixed_pass(unsigned seconds)
{
	wall_seconds += seconds;
}

int64_t __wrap_clk_wall_seconds(void)
{
	return wall_seconds;
}

void __wrap_rng_secret(void *bytes, size_t length)
{
	for (size_t i = 0; i < length; i++)
		((uint8_t *)bytes)[i] = (uint8_t)rng_next(&secret);
}

/* ---- contexts of libaio ---------------------------------------------------------------------- */

static struct {
	io_context_t context;
	int size;
	bool spare;
} contexts[CONTEXTS];

int __wrap_io_setup(int size, io_context_t *context)
{
	int result;

	for (unsigned i = 0; i < CONTEXTS; i++)
		if (contexts[i].spare && contexts[i].size == size) {
			contexts[i].spare = false;
			*context = contexts[i].context;
			return 0;
		}
	result = __real_io_setup(size, context);
	for (unsigned i = 0; result == 0 && i < CONTEXTS; i++)
		if (!contexts[i].context) {
			contexts[i].context = *context;
			contexts[i].size = size;
			break;
		}
	return result;
}

/* What it was used for is done. */
int __wrap_io_destroy(io_context_t context)
{
	struct timespec none = { 0, 0 };
	struct io_event event;

	for (unsigned i = 0; i < CONTEXTS; i++)
		if (contexts[i].context == context) {
			while (io_getevents(context, 0, 1, &event, &none) == 1)
				;
			contexts[i].spare = true;
			return 0;
		}
	return __real_io_destroy(context);
}

/* ---- removal of files ------------------------------------------------------------------------ */

static bool (*may_unlink)(const char *path);

void fixed_on_unlink(bool (*asked)(const char *path))
{
	may_unlink = asked;
}

int __wrap_unlink(const char *path)
{
	return may_unlink && !may_unlink(path) ? 0 : __real_unlink(path);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/stale/stale.h"

const char *const OP_NAMES[OP_KINDS] = { "get", "gets", "set", "delete", "touch", "add", "cas", "incr", "append" };
static const char LETTERS[FAMILIES] = { 'o', 'c', 'n', 'l' };

static struct key *keys;
static uint32_t firsts[FAMILIES + 1];

void keys_init(void)
{
	for (unsigned i = 0; i < FAMILIES; i++)
		firsts[i + 1] = firsts[i] + options.keys[i];
	keys = aligned_alloc(64, sizeof(*keys) * (keys_all() + 1));
	if (!keys)
		abort();
	memset(keys, 0, sizeof(*keys) * (keys_all() + 1));
	for (unsigned i = 0; i < FAMILIES; i++)
		for (uint32_t n = firsts[i]; n < firsts[i + 1]; n++)
			keys[n].family = (enum family)i, keys[n].missed = true;
}

uint32_t keys_all(void)
{
	return firsts[FAMILIES];
}

struct key *key_of(uint32_t number)
{
	return &keys[number];
}

uint32_t family_first(enum family family)
{
	return firsts[family];
}

/* ---- names ------------------------------------------------------------------------------------- */

size_t key_name(uint32_t number, char out[KEY_NAME_MOST])
{
	int length = snprintf(out, KEY_NAME_MOST, "%c:%" PRIu32, LETTERS[keys[number].family], number);

	if (number % 10 == 9) { /* a long one */
		memset(out + length, '-', 110);
		length += 110;
		out[length] = '\0';
	}
	return (size_t)length;
}

uint32_t key_find(const char *name, size_t length)
{
	char real[KEY_NAME_MOST];
	unsigned long number;

	if (length < 3)
		return UINT32_MAX;
	number = strtoul(name + 2, NULL, 10);
	if (number >= keys_all() || key_name((uint32_t)number, real) != length || memcmp(real, name, length) != 0)
		return UINT32_MAX;
	return (uint32_t)number;
}

/* ---- words ------------------------------------------------------------------------------------- */

static void raise(_Atomic uint64_t *word, uint64_t to)
{
	uint64_t is = atomic_load(word);

	while (is < to && !atomic_compare_exchange_weak(word, &is, to))
		;
}

void key_over(uint32_t number, uint64_t version)
{
	raise(&keys[number].over, version);
}

void key_is(uint32_t number, uint64_t version)
{
	key_over(number, version);
	raise(&keys[number].floor, version);
}

void key_gone(uint32_t number, uint64_t version)
{
	raise(&keys[number].floor, version + 1);
}

void key_check(const struct op *op, uint32_t number, uint64_t floor, uint64_t version)
{
	uint64_t issued = atomic_load(&keys[number].issued);

	if (version < floor)
		violation(op, number,
			  "STALE: version %" PRIu64 " was shown, but at the start of the get it was at least %" PRIu64,
			  version, floor);
	if (keys[number].family == FAMILY_OWNED ? version > issued : version >> 32 > issued)
		violation(op, number, "version %" PRIu64 " was shown, but never written (the newest is %" PRIu64 ")",
			  version, issued);
}

/* ---- reports ----------------------------------------------------------------------------------- */

uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void violation(const struct op *op, uint32_t number, const char *format, ...)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	char name[KEY_NAME_MOST];
	va_list list;

	pthread_mutex_lock(&once); /* for ever */
	printf("VIOLATION at %.3f s: ", (double)now_ns() / 1e9);
	va_start(list, format);
	vprintf(format, list);
	va_end(list);
	if (number < keys_all()) {
		const struct key *key = &keys[number];

		key_name(number, name);
		printf("\n  key %.20s: floor %" PRIu64 ", over %" PRIu64 ", issued %" PRIu64, name,
		       atomic_load(&key->floor), atomic_load(&key->over), atomic_load(&key->issued));
		if (key->family == FAMILY_OWNED)
			owned_print(number);
	}
	if (op)
		printf("\n  command %s, version %" PRIu64 ", exptime %d", OP_NAMES[op->kind], op->version, op->exptime);
	printf("\n");
	fflush(stdout);
	_exit(1);
}

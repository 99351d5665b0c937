/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/fault.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/error.h"
#include "base/log.h"
#include "base/rng.h"

struct fault_state {
	_Atomic int mode;
	_Atomic uint64_t n;
	_Atomic uint64_t calls;
	_Atomic uint64_t fired;
	void (*call)(void *context); /* this and context are constant while mode isn't FAULT_OFF */
	void *context;
};

static struct fault_state states[FAULT_POINTS];
static bool tells_kills; /* constant while a point is armed by the environment */

static const char *const names[FAULT_POINTS] = {
#define FAULT_NAME(name, text) #name,
	FAULT_TABLE(FAULT_NAME)
#undef FAULT_NAME
};

void fault_arm(enum fault_point point, enum fault_mode mode, uint64_t n)
{
	struct fault_state *state = &states[point];

	must((unsigned)point < FAULT_POINTS && (unsigned)mode <= FAULT_PROBABILITY);
	atomic_store(&state->mode, FAULT_OFF);
	atomic_store(&state->calls, 0);
	atomic_store(&state->fired, 0);
	atomic_store(&state->n, n);
	atomic_store(&state->mode, (int)mode);
}

void fault_call(enum fault_point point, void (*call)(void *context), void *context)
{
	must(atomic_load(&states[point].mode) == FAULT_OFF);
	states[point].call = call;
	states[point].context = context;
}

void fault_disarm_all(void)
{
	tells_kills = false;
	for (int point = 0; point < FAULT_POINTS; point++) {
		fault_arm((enum fault_point)point, FAULT_OFF, 0);
		fault_call((enum fault_point)point, NULL, NULL);
	}
}

uint64_t fault_fired(enum fault_point point)
{
	return atomic_load(&states[point].fired);
}

#ifdef FS_FAULTS
bool fault_fires(enum fault_point point)
{
	struct fault_state *state = &states[point];
	enum fault_mode mode = (enum fault_mode)atomic_load_explicit(&state->mode, memory_order_relaxed);
	uint64_t n, call;
	bool fires = false;

	if (mode == FAULT_OFF)
		return false;
	n = atomic_load(&state->n);
	call = atomic_fetch_add(&state->calls, 1) + 1;
	switch (mode) {
	case FAULT_OFF:
		break;
	case FAULT_ALWAYS:
		fires = true;
		break;
	case FAULT_EVERY:
		fires = n > 0 && call % n == 0;
		break;
	case FAULT_AFTER:
		fires = call == n + 1;
		break;
	case FAULT_PROBABILITY:
		/* The call's number decides, mixed, so that the same calls fire in every run. */
		fires = mix64(call + ((uint64_t)point << 48)) % 1000 < n;
		break;
	}
	if (!fires)
		return false;
	atomic_fetch_add(&state->fired, 1);
	if (state->call)
		state->call(state->context);
	return true;
}
#endif

/* In one write, without a lock of the log's: the caller may hold any. */
static void tell_kill(enum fault_point point)
{
	char line[80];
	int length = snprintf(line, sizeof(line), FAULT_KILL_LINE "\n", names[point]);

	if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
		return; /* nobody listens */
}

void fault_kill(enum fault_point point)
{
	if (!fault_fires(point))
		return;
	if (tells_kills)
		tell_kill(point);
	(void)raise(SIGKILL);
}

/* Arms one "name=mode[:n]", which it cuts up. 0 or FS_EINVAL. */
static FS_MUST_CHECK int arm_from_word(char *word)
{
	static const struct {
		const char *text;
		enum fault_mode mode;
		bool with_number;
	} modes[] = {
		{ "always", FAULT_ALWAYS, false },
		{ "every", FAULT_EVERY, true },
		{ "after", FAULT_AFTER, true },
		{ "prob", FAULT_PROBABILITY, true },
	};
	char *mode_text = strchr(word, '=');
	char *number_text;
	int point;

	if (!mode_text)
		return FS_EINVAL;
	*mode_text++ = 0;
	number_text = strchr(mode_text, ':');
	if (number_text)
		*number_text++ = 0;
	for (point = 0; point < FAULT_POINTS; point++)
		if (strcmp(names[point], word) == 0)
			break;
	if (point == FAULT_POINTS)
		return FS_EINVAL;
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		char *end = NULL;
		unsigned long long n = 0;

		if (strcmp(modes[i].text, mode_text) != 0)
			continue;
		if (modes[i].with_number != (number_text != NULL))
			return FS_EINVAL;
		if (number_text) {
			if (*number_text < '0' || *number_text > '9')
				return FS_EINVAL;
			n = strtoull(number_text, &end, 10);
			if (*end)
				return FS_EINVAL;
		}
		fault_arm((enum fault_point)point, modes[i].mode, n);
		return FS_OK;
	}
	return FS_EINVAL;
}

int fault_init_from_environment(void)
{
	const char *text = getenv("FLASHIELD_FAULTS");
	char *copy, *rest, *word;
	int rc = FS_OK;

	if (!text || !*text)
		return FS_OK;
	tells_kills = true;
#ifndef FS_FAULTS
	log_warn("FLASHIELD_FAULTS is set, but this build has no fault points");
#endif
	copy = strdup(text);
	if (!copy)
		return FS_ENOMEM;
	rest = copy;
	while (rc == FS_OK && (word = strsep(&rest, ",")) != NULL) {
		char shown[80];

		if (!*word)
			continue;
		snprintf(shown, sizeof(shown), "%s", word);
		rc = arm_from_word(word);
		if (rc != FS_OK)
			log_error("FLASHIELD_FAULTS: \"%s\" is not name=always, name=every:N, "
				  "name=after:N or name=prob:PERMILLE with a known name",
				  shown);
	}
	free(copy);
	return rc;
}

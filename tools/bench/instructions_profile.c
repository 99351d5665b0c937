/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/bench/instructions_profile.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

#define NUMBERS_MAX (1u << 24) /* names in a file: one with more is none */

/* Names by the numbers that a file gives them: objects. */
struct names {
	char **name;
	size_t count;
};

/* While a file is read, functions are at the places of their numbers; gaps have no name. */
struct reader {
	struct profile *profile;
	struct names objects;
	const char *object, *callee_object; /* which the next functions are of; callee_object: NULL = the same */
	size_t current; /* function whose lines are read */
	bool has_current;
	bool is_callee; /* the next line of costs is */
	bool has_total;
};

static char *copy(const char *text, size_t length)
{
	char *out = mem_must_zalloc(length + 1);

	memcpy(out, text, length);
	return out;
}

/* An array with room for count elements, those from *have on zeroed. Grows by doubling. */
static void *grown(void *array, size_t *have, size_t count, size_t bytes)
{
	size_t room = 1;

	if (count <= *have)
		return array;
	while (room < *have)
		room *= 2;
	if (count > room || *have == 0) {
		while (room < count)
			room *= 2;
		array = mem_realloc(array, room * bytes);
		must(array);
	}
	memset((char *)array + *have * bytes, 0, (count - *have) * bytes);
	*have = count;
	return array;
}

/* "(12) name" at its first mention, "(12)" after that. *name: NULL when there is none. False: neither. */
static bool number_of(const char *text, size_t *number, const char **name)
{
	char *end;

	if (*text != '(')
		return false;
	*number = strtoul(text + 1, &end, 10);
	if (end == text + 1 || *end != ')' || *number >= NUMBERS_MAX)
		return false;
	for (end++; *end == ' '; end++)
		continue;
	*name = *end && *end != '\n' ? end : NULL;
	return true;
}

/* The object's file name without its folder; NULL: the line is wrong. */
static const char *object_of(struct reader *reader, const char *text)
{
	struct names *objects = &reader->objects;
	const char *name;
	size_t number;

	if (!number_of(text, &number, &name))
		return NULL;
	objects->name = grown(objects->name, &objects->count, number + 1, sizeof(*objects->name));
	if (name && !objects->name[number]) {
		const char *slash = memrchr(name, '/', strcspn(name, "\n"));

		name = slash ? slash + 1 : name;
		objects->name[number] = copy(name, strcspn(name, "\n"));
	}
	return objects->name[number];
}

/* A stripped program's functions are addresses: they are told with the object that they are in. */
static char *function_name(const char *name, const char *object)
{
	size_t length = strcspn(name, "\n"), bytes = length + strlen(object) + 2;
	char *out;

	if (strncmp(name, "0x", 2) != 0)
		return copy(name, length);
	out = mem_must_zalloc(bytes);
	snprintf(out, bytes, "%s %.*s", object, (int)length, name);
	return out;
}

static bool function_of(struct reader *reader, const char *text, const char *object, size_t *number)
{
	struct profile *profile = reader->profile;
	const char *name;

	if (!number_of(text, number, &name))
		return false;
	profile->functions = grown(profile->functions, &profile->count, *number + 1, sizeof(*profile->functions));
	if (name && !profile->functions[*number].name)
		profile->functions[*number].name = function_name(name, object);
	return profile->functions[*number].name;
}

/* "position cost"; the position is absolute or relative to the last one. */
static bool cost_line(struct reader *reader, const char *line)
{
	const char *cost = strchr(line, ' ');

	if (!cost || !reader->has_current)
		return false;
	if (!reader->is_callee)
		reader->profile->functions[reader->current].self += strtod(cost, NULL);
	reader->is_callee = false;
	return true;
}

/* What follows the word at the beginning of a line, or NULL. */
static const char *after(const char *line, const char *word)
{
	size_t length = strlen(word);

	return strncmp(line, word, length) == 0 ? line + length : NULL;
}

static bool callee_line(struct reader *reader, const char *text)
{
	const char *object = reader->callee_object ? reader->callee_object : reader->object;
	size_t number;

	reader->callee_object = NULL;
	return function_of(reader, text, object, &number);
}

static bool object_line(struct reader *reader, const char **object, const char *text)
{
	*object = object_of(reader, text);
	return *object != NULL;
}

static bool read_line(struct reader *reader, const char *line)
{
	const char *text;

	if (isdigit((unsigned char)*line) || *line == '+' || *line == '-' || *line == '*')
		return cost_line(reader, line);
	if ((text = after(line, "fn="))) {
		reader->has_current = function_of(reader, text, reader->object, &reader->current);
		return reader->has_current;
	}
	if ((text = after(line, "cfn=")))
		return callee_line(reader, text);
	if ((text = after(line, "ob=")))
		return object_line(reader, &reader->object, text);
	if ((text = after(line, "cob=")))
		return object_line(reader, &reader->callee_object, text);
	if (after(line, "calls=")) {
		reader->is_callee = true;
	} else if ((text = after(line, "totals:"))) {
		reader->profile->total += strtod(text, NULL);
		reader->has_total = true;
	}
	return true; /* source files, and what describes the run */
}

static int by_name(const void *left, const void *right)
{
	const struct profile_function *a = left, *b = right;

	return strcmp(a->name, b->name);
}

/* Without the numbers that no function had, and with one function for each name. */
static void tidy(struct profile *profile)
{
	size_t kept = 0;

	for (size_t i = 0; i < profile->count; i++)
		if (profile->functions[i].name)
			profile->functions[kept++] = profile->functions[i];
	profile->count = kept;
	if (kept == 0)
		return;
	qsort(profile->functions, kept, sizeof(*profile->functions), by_name);
	kept = 1;
	for (size_t i = 1; i < profile->count; i++) {
		struct profile_function *last = &profile->functions[kept - 1];

		if (strcmp(last->name, profile->functions[i].name) == 0) {
			last->self += profile->functions[i].self;
			mem_free(profile->functions[i].name);
		} else {
			profile->functions[kept++] = profile->functions[i];
		}
	}
	profile->count = kept;
}

int profile_read(struct profile *profile, const char *path)
{
	struct reader reader = { .profile = profile, .object = "" };
	bool is_right = true;
	char *line = NULL;
	size_t bytes = 0;
	FILE *file;

	*profile = (struct profile){ 0 };
	file = fopen(path, "re");
	if (!file)
		return FS_ESYS;
	while (is_right && getline(&line, &bytes, file) > 0)
		is_right = read_line(&reader, line);
	free(line); /* getline's own */
	fclose(file);
	for (size_t i = 0; i < reader.objects.count; i++)
		mem_free(reader.objects.name[i]);
	mem_free(reader.objects.name);
	tidy(profile);
	return is_right && reader.has_total ? FS_OK : FS_ECORRUPT;
}

void profile_fini(struct profile *profile)
{
	for (size_t i = 0; i < profile->count; i++)
		mem_free(profile->functions[i].name);
	mem_free(profile->functions);
	*profile = (struct profile){ 0 };
}

static int name_is(const void *name, const void *function)
{
	return strcmp(name, ((const struct profile_function *)function)->name);
}

double profile_self(const struct profile *profile, const char *name)
{
	const struct profile_function *found = NULL;

	if (profile->count)
		found = bsearch(name, profile->functions, profile->count, sizeof(*found), name_is);
	return found ? found->self : 0;
}

static int by_cost(const void *left, const void *right)
{
	const struct profile_function *a = left, *b = right;

	if (a->self != b->self)
		return a->self < b->self ? 1 : -1;
	return strcmp(a->name, b->name);
}

void profile_per_operation(struct profile *more, const struct profile *less, double operations)
{
	more->total = (more->total - less->total) / operations;
	for (size_t i = 0; i < more->count; i++) {
		struct profile_function *function = &more->functions[i];

		function->self = (function->self - profile_self(less, function->name)) / operations;
	}
	if (more->count)
		qsort(more->functions, more->count, sizeof(*more->functions), by_cost);
}

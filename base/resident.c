/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/resident.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/sanitizer.h"

#define PAGES_AT_ONCE 4096u
#define BLOCKS_MOST 128u /* blocks of PAGES_AT_ONCE, 2 GiB in all; of more memory every n-th block is looked at */
/* Bits of an entry of /proc/self/pagemap. */
#define PAGE_PRESENT (1ull << 63) /* the page is in memory */
#define PAGE_OWN (1ull << 56) /* and mapped by this process alone */
#define ZEROED_MOST (256u << 10) /* most of a library's zeroed data; a larger mapping is something else */
#define LINE_BYTES 512u
#define TEXT_BYTES 4096u

/* A line of /proc/self/maps. */
struct mapping {
	uintptr_t from, to;
	char rights[5], name[256];
};

struct sum {
	struct resident *out;
	struct mapping before; /* the mapping before this one */
	bool data; /* it was a file's writable data */
	uint64_t stack_bytes; /* of a thread's stack, as mapped */
};

/* Counts by the kernel's map of each page; false if that can't be read. A page that was only read is a page of zeros
   that all processes share, and so counts as absent. */
static FS_MUST_CHECK bool count_by_map(uintptr_t from, uint64_t pages, uint64_t page, uint64_t stride, uint64_t *absent)
{
	uint64_t map[PAGES_AT_ONCE];
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	bool done = fd >= 0;

	for (uint64_t at = 0; done && at < pages; at += stride * PAGES_AT_ONCE) {
		uint64_t count = pages - at < PAGES_AT_ONCE ? pages - at : PAGES_AT_ONCE;
		size_t bytes = count * sizeof(map[0]);

		done = pread(fd, map, bytes, (off_t)((from / page + at) * sizeof(map[0]))) == (ssize_t)bytes;
		for (uint64_t i = 0; done && i < count; i++)
			*absent += (map[i] & (PAGE_PRESENT | PAGE_OWN)) != (PAGE_PRESENT | PAGE_OWN) ? stride : 0;
	}
	if (fd >= 0)
		close(fd);
	return done;
}

/* For a process that has changed its user and may not read that map. Pages that were only read count as present. */
static void count_by_core(uintptr_t from, uint64_t pages, uint64_t page, uint64_t stride, uint64_t *absent)
{
	unsigned char map[PAGES_AT_ONCE];

	for (uint64_t at = 0; at < pages; at += stride * PAGES_AT_ONCE) {
		uint64_t count = pages - at < PAGES_AT_ONCE ? pages - at : PAGES_AT_ONCE;

		if (mincore((void *)(from + at * page), count * page, map) != 0)
			return;
		for (uint64_t i = 0; i < count; i++)
			*absent += map[i] & 1 ? 0 : stride;
	}
}

static uint64_t pages_absent(uintptr_t from, uint64_t pages, uint64_t page)
{
	uint64_t absent = 0, stride = pages / PAGES_AT_ONCE / BLOCKS_MOST + 1;

	if (!count_by_map(from, pages, page, stride, &absent)) {
		absent = 0;
		count_by_core(from, pages, page, stride, &absent);
	}
	return absent < pages ? absent : pages; /* a stride counts pages beyond the end */
}

uint64_t resident_untouched(const void *memory, uint64_t bytes)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)memory + page - 1) / page * page, to = ((uintptr_t)memory + bytes) / page * page;

	return to > from ? pages_absent(from, (to - from) / page, page) * page : 0;
}

static uint64_t mapping_touched(const struct mapping *mapping)
{
	uint64_t bytes = mapping->to - mapping->from;

	return bytes - resident_untouched((const void *)mapping->from, bytes);
}

/*
 * The kernel counts a file's pages as files until they are written to. Loading a library writes its data, and also the
 * mapping before them, which is made read-only afterwards.
 */
static void count_mapping(struct sum *sum, const struct mapping *mapping)
{
	const struct mapping *before = &sum->before;
	bool of_file = mapping->name[0] == '/', writable = mapping->rights[1] == 'w';
	bool follows = mapping->from == before->to;

	if (of_file && writable && mapping->rights[3] == 'p') {
		sum->out->files += mapping->to - mapping->from;
		if (follows && strcmp(before->name, mapping->name) == 0 && before->rights[1] != 'w' &&
		    before->rights[2] != 'x')
			sum->out->files += before->to - before->from;
		sum->data = true;
	} else if (!mapping->name[0] && writable && follows && sum->data) {
		sum->out->files += mapping->to - mapping->from < ZEROED_MOST ? mapping_touched(mapping) : 0;
		sum->data = false;
	} else {
		sum->data = false;
		if (strcmp(mapping->name, "[stack]") == 0 ||
		    (!mapping->name[0] && writable && mapping->to - mapping->from == sum->stack_bytes))
			sum->out->stacks += mapping_touched(mapping);
	}
	sum->before = *mapping;
}

static void count_mapping_line(struct sum *sum, const char *line)
{
	struct mapping mapping = { 0 };
	unsigned long from, to;

	if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %255[^\n]", &from, &to, mapping.rights, mapping.name) < 3)
		return;
	mapping.from = from;
	mapping.to = to;
	count_mapping(sum, &mapping);
}

static void count_mappings(struct sum *sum)
{
	char text[TEXT_BYTES], line[LINE_BYTES];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	ssize_t length;

	if (fd < 0)
		return;
	while ((length = read(fd, text, sizeof(text))) > 0) {
		for (ssize_t i = 0; i < length; i++) {
			if (used < sizeof(line) - 1)
				line[used++] = text[i];
			if (text[i] == '\n') {
				line[used] = '\0';
				count_mapping_line(sum, line);
				used = 0;
			}
		}
	}
	close(fd);
}

static uint64_t stack_bytes(void)
{
	pthread_attr_t attributes;
	size_t bytes = 0;

	if (pthread_attr_init(&attributes) != 0)
		return 0;
	if (pthread_attr_getstacksize(&attributes, &bytes) != 0)
		bytes = 0;
	pthread_attr_destroy(&attributes);
	return bytes;
}

/* All resident memory, and the part of it that is mapped from files and unchanged. */
static void read_totals(struct resident *out)
{
	unsigned long long page = (unsigned long long)sysconf(_SC_PAGESIZE), all, files;
	char text[128];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t length;

	*out = (struct resident){ 0 };
	if (fd < 0)
		return;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return;
	text[length] = '\0';
	if (sscanf(text, "%*u %llu %llu", &all, &files) == 2) {
		out->all = all * page;
		out->files = files * page;
	}
}

uint64_t resident_bytes(void)
{
	struct resident totals;

	read_totals(&totals);
	return totals.all;
}

bool resident_is_exact(void)
{
	return !UNDER_SANITIZER;
}

void resident_read(struct resident *out)
{
	struct sum sum = { .out = out, .stack_bytes = stack_bytes() };

	read_totals(out);
	count_mappings(&sum);
}

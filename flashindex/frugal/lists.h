/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists by partition and column: how many values each column has in each partition, at little more than a bit for each
 * value, and where they lie in one array of all values.
 *
 *   values   partition 0: column 0, column 1, ...; partition 1: column 0, ...      an array that the caller has
 *   bits     for each of these lists, in the same order: a 0 for each value, then a 1
 *   samples  for each group of partitions: the number of values before it
 *
 * With two columns of 2 and 0 values in partition 0, and 1 and 3 in partition 1, the bits are 0 0 1 1 0 1 0 0 0 1. There
 * are as many zeros as values, and as many ones as lists, so the bits of a group begin at a place that its sample tells.
 * A record of the chain has lists of a single partition, and needs no samples.
 *
 * The bits may come from flash, a file or the region: whatever they are, no function here reads beyond the arrays, and
 * results are within them.
 *
 * Threads: one writer; pure functions over lists that nobody changes: any.
 */
#ifndef FS_FRUGAL_LISTS_H
#define FS_FRUGAL_LISTS_H

#include <stdbool.h>
#include <stdint.h>

struct lists {
	uint32_t partitions, columns; /* partitions: 1 or more */
	uint32_t group; /* partitions to a sample, 1 or more */
	uint64_t values;
	const uint64_t *bits; /* lists_words() of them */
	const uint32_t *samples; /* lists_samples() of them; NULL: one partition */
};

/* Returns the partitions to a sample by which a search skips some 32 lists at the most. */
uint32_t lists_group(uint32_t columns);
/* Returns the 64-bit words of the bits. */
static inline uint64_t lists_words(uint32_t partitions, uint32_t columns, uint64_t values)
{
	return (values + (uint64_t)partitions * columns + 63) / 64;
}
/* Returns the number of samples: one for each group, and one behind the last. */
static inline uint64_t lists_samples(uint32_t partitions, uint32_t columns)
{
	uint32_t group = lists_group(columns);

	return ((uint64_t)partitions + group - 1) / group + 1;
}

/* The values of a partition: first .. end - 1, and the place of its first bit. */
struct lists_range {
	uint64_t first, end, bit;
};
/* Returns the range of a partition, below lists->partitions. */
struct lists_range lists_range(const struct lists *lists, uint32_t partition);
/* Returns the column of a value of that range; lists->columns where the bits are not those of such lists. */
uint32_t lists_column(const struct lists *lists, const struct lists_range *range, uint64_t value);

/* Makes lists: the counts come in order of partition and column. */
struct lists_writer {
	uint64_t *bits; /* zeros in the beginning */
	uint32_t *samples; /* or NULL */
	uint64_t words, at, values;
	uint32_t columns, group, column, partition; /* of the next list */
};
void lists_write_begin(struct lists_writer *writer, uint32_t columns, uint64_t *bits, uint64_t words,
		       uint32_t *samples);
void lists_write(struct lists_writer *writer, uint32_t count);
/* Fills in the last sample. All lists are written, of which there were values in all. */
void lists_write_end(const struct lists_writer *writer);

/* Reads the counts in the order in which they were written. */
struct lists_reader {
	const struct lists *lists;
	uint64_t at, values; /* the next bit; values of the lists before */
};
/* Returns the count of the next list. Where the bits are not those of such lists, no more values than there are. */
uint32_t lists_read(struct lists_reader *reader);

/* Returns the place of the first of the values from..end - 1 that is equal to this one; end: none is. */
uint64_t values16_find(const uint16_t *values, uint64_t from, uint64_t end, uint16_t value);
/* The same for wider values. */
uint64_t values32_find(const uint32_t *values, uint64_t from, uint64_t end, uint32_t value);

#endif

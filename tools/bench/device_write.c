/* SPDX-License-Identifier: BSD-3-Clause */
/* Overwrites regions with data that no drive can compress or has seen before. */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/hash.h"
#include "tools/bench/bench.h"
#include "tools/bench/device.h"

#define PAGE 4096u
#define CALL_BYTES (8u << 20) /* per write call: a larger unit takes several, one after the other */

struct writer {
	const struct device_target *target;
	uint64_t *data; /* CALL_BYTES of it */
	uint64_t random;
	struct device_written *written;
};

static uint64_t next_random(struct writer *writer)
{
	writer->random += 0x9e3779b97f4a7c15ull;
	return mix64(writer->random);
}

static void fill(struct writer *writer)
{
	for (size_t i = 0; i < CALL_BYTES / sizeof(*writer->data); i++)
		writer->data[i] = next_random(writer);
}

/* Random data plus one random word everywhere is new random data, at the speed of memory: a generator's
   would be felt beside a fast drive. */
static void renew(struct writer *writer, size_t bytes)
{
	uint64_t word = next_random(writer);

	for (size_t i = 0; i < bytes / sizeof(word); i++)
		writer->data[i] ^= word;
}

static double seconds_now(void)
{
	struct timespec now;

	must(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* 0, or -1 with errno. */
static int write_all(int fd, const void *from, size_t bytes, uint64_t offset)
{
	const uint8_t *data = from;

	while (bytes > 0) {
		ssize_t n = pwrite(fd, data, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			errno = EIO;
		if (n <= 0)
			return -1;
		data += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int write_region(struct writer *writer, uint64_t offset, uint64_t bytes)
{
	for (uint64_t done = 0; done < bytes;) {
		size_t part = bytes - done < CALL_BYTES ? (size_t)(bytes - done) : CALL_BYTES;
		double start;

		if (bench_interrupted()) {
			errno = EINTR;
			return FS_ESYS;
		}
		renew(writer, part);
		start = seconds_now();
		if (write_all(writer->target->fd, writer->data, part, offset + done) != 0)
			return FS_ESYS;
		writer->written->seconds += seconds_now() - start;
		writer->written->bytes += part;
		done += part;
	}
	return FS_OK;
}

static int write_job(struct writer *writer, const struct device_job *job)
{
	uint64_t regions = job->span_bytes / job->unit_bytes;
	uint64_t writes = (job->total_bytes + job->unit_bytes - 1) / job->unit_bytes;
	double start;
	int rc = FS_OK;

	for (uint64_t i = 0; i < writes && rc == FS_OK; i++) {
		uint64_t region = job->pattern == DEVICE_RANDOM ? reduce64(next_random(writer), regions) : i % regions;

		rc = write_region(writer, region * job->unit_bytes, job->unit_bytes);
	}
	if (rc != FS_OK)
		return rc;
	start = seconds_now();
	if (fdatasync(writer->target->fd) != 0)
		return FS_ESYS;
	writer->written->seconds += seconds_now() - start;
	return FS_OK;
}

int device_write(const struct device_target *target, const struct device_job *job, struct device_written *written)
{
	struct writer writer = { .target = target, .random = mix64(job->seed + 1), .written = written };
	int rc;

	*written = (struct device_written){ 0 };
	if (job->unit_bytes == 0 || job->unit_bytes % PAGE != 0 || job->span_bytes < job->unit_bytes ||
	    job->span_bytes > target->bytes)
		return FS_EINVAL;
	writer.data = mem_aligned(PAGE, CALL_BYTES);
	if (!writer.data)
		return FS_ENOMEM;
	fill(&writer);
	rc = write_job(&writer, job);
	mem_free(writer.data);
	return rc;
}

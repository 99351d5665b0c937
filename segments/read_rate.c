/* SPDX-License-Identifier: BSD-3-Clause */
#include "segments/read_rate_internal.h"

#include <string.h>

#include "base/assert.h"

#define SMOOTHING (1.0 / 16) /* weight of one answer in the service time */
#define DRIVE_SHARE 2u /* the drive is given the reads that it does in this part of the patience */
#define WINDOW_LEAST_NS 250000000u
#define LATE_LEAST 8u
#define UNSEEN_SHARE 8u /* of the patience: see READ_RATE_LOOK_NS */
#define SILENT_TIMES 2u
#define SILENT_MORE_NS 1000000000u

/* Begins the next window when this one is over; after a pause of two windows, both are empty. */
static void roll_window(struct read_rate *rate, uint64_t now_ns)
{
	uint64_t length = rate->patience_ns > WINDOW_LEAST_NS ? rate->patience_ns : WINDOW_LEAST_NS;
	bool long_ago = now_ns >= rate->window_ns + 2 * length;

	if (now_ns < rate->window_ns + length)
		return;
	rate->in_time[1] = long_ago ? 0 : rate->in_time[0];
	rate->late[1] = long_ago ? 0 : rate->late[0];
	rate->in_time[0] = rate->late[0] = 0;
	rate->window_ns = now_ns;
}

/* The time for which the drive has certainly had a read that was sent at sent_ns. */
static uint64_t held_ns(const struct read_rate *rate, uint64_t sent_ns, uint64_t now_ns)
{
	uint64_t known_ns = rate->looked_ns > sent_ns ? rate->looked_ns : sent_ns;
	uint64_t unseen_ns = rate->patience_ns / UNSEEN_SHARE;

	if (unseen_ns == 0 || unseen_ns > READ_RATE_LOOK_NS)
		unseen_ns = READ_RATE_LOOK_NS;
	if (now_ns > known_ns + unseen_ns)
		now_ns = known_ns + unseen_ns;
	return now_ns > sent_ns ? now_ns - sent_ns : 0;
}

void read_rate_looked(struct read_rate *rate, uint64_t now_ns)
{
	rate->looked_ns = now_ns;
}

void read_rate_answered(struct read_rate *rate, uint64_t sent_ns, unsigned company, uint64_t now_ns)
{
	uint64_t latency_ns = held_ns(rate, sent_ns, now_ns);
	double service;

	must(company > 0);
	service = (double)latency_ns / company;
	rate->service_ns += rate->service_ns > 0 ? SMOOTHING * (service - rate->service_ns) : service;
	roll_window(rate, now_ns);
	if (latency_ns >= rate->patience_ns)
		return;
	rate->in_time[0]++;
	rate->late_since_ns = 0;
}

void read_rate_late(struct read_rate *rate, uint64_t now_ns)
{
	roll_window(rate, now_ns);
	rate->late[0]++;
	if (rate->late_since_ns == 0)
		rate->late_since_ns = now_ns;
}

/* The service time, or the age of the oldest read when that says more: it shows early that a drive has stopped. */
static double service_now(const struct read_rate *rate, const struct read_queue *queue, uint64_t now_ns)
{
	double waited = 0;

	if (queue->fresh > 0)
		waited = (double)held_ns(rate, queue->oldest_ns, now_ns) / queue->company;
	return waited > rate->service_ns ? waited : rate->service_ns;
}

unsigned read_rate_depth(const struct read_rate *rate, unsigned most)
{
	double depth = most;

	if (rate->patience_ns > 0 && rate->service_ns > 0)
		depth = (double)rate->patience_ns / DRIVE_SHARE / rate->service_ns;
	if (depth >= most)
		return most;
	if (depth < READ_RATE_DEPTH_LEAST)
		return READ_RATE_DEPTH_LEAST < most ? READ_RATE_DEPTH_LEAST : most;
	return (unsigned)depth;
}

bool read_rate_admits(const struct read_rate *rate, const struct read_queue *queue, bool begun, uint64_t now_ns)
{
	double patience = (double)rate->patience_ns;
	uint64_t ahead = queue->with_drive + queue->waiting;

	must(queue->fresh <= queue->with_drive);
	/* An idle drive is always asked: otherwise it could never show that it is fast again. */
	if (rate->patience_ns == 0 || ahead == 0)
		return true;
	if (rate->late_since_ns != 0)
		return queue->fresh == 0 && queue->waiting == 0;
	return (double)(ahead + 1) * service_now(rate, queue, now_ns) <= (begun ? patience : patience / 4 * 3);
}

uint64_t read_rate_latency_ns(const struct read_rate *rate, const struct read_queue *queue, uint64_t now_ns)
{
	return (uint64_t)(service_now(rate, queue, now_ns) * (queue->with_drive + 1));
}

bool read_rate_silent(struct read_rate *rate, uint64_t now_ns)
{
	uint32_t late, in_time;

	if (rate->patience_ns == 0 || rate->late_since_ns == 0)
		return false;
	roll_window(rate, now_ns);
	late = rate->late[0] + rate->late[1];
	in_time = rate->in_time[0] + rate->in_time[1];
	return (late >= LATE_LEAST && late >= in_time) ||
	       now_ns >= rate->late_since_ns + SILENT_TIMES * rate->patience_ns + SILENT_MORE_NS;
}

void read_rate_forgive(struct read_rate *rate)
{
	memset(rate->in_time, 0, sizeof(rate->in_time));
	memset(rate->late, 0, sizeof(rate->late));
	rate->late_since_ns = 0;
}

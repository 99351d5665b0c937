/* SPDX-License-Identifier: BSD-3-Clause */
/* The submitter: requests go to their queue again, or are read in place and handed back; each of them once, in order. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/fault.h"
#include "tests/unit/segments/fixture.h"

#define MANY 200u
#define THREADS 4u

/* A device that remembers what it was asked. Its queue takes requests, or refuses them. */
struct fake {
	struct dev dev;
	bool refuse;
	int read_error; /* a negative errno; 0: reads succeed */
	unsigned submitted, read, handed_back; /* by the submitter's thread alone */
	struct dev_io *order[MANY];
	pthread_t thread;
	sem_t gate; /* a submit waits for it */
	sem_t answered; /* a request was taken by the queue or handed back */
};

struct request {
	struct dev_io io;
	struct fake *fake;
	unsigned handed_back; /* how often */
	unsigned place; /* among those that were handed back, from 1 */
};

static void remember(struct fake *fake, struct dev_io *io)
{
	if (fake->submitted <= MANY)
		fake->order[fake->submitted - 1] = io;
	fake->thread = pthread_self();
}

static int fake_submit(struct dev_queue *queue, struct dev_io **ios, unsigned n)
{
	struct fake *fake = (struct fake *)(void *)queue;

	assert_int_equal(n, 1);
	assert_false(ios[0]->nowait); /* it may block now */
	while (sem_wait(&fake->gate) != 0)
		assert_int_equal(errno, EINTR);
	fake->submitted++;
	remember(fake, ios[0]);
	if (fake->refuse)
		return -EAGAIN;
	sem_post(&fake->answered);
	return 1;
}

static int fake_read(struct dev *dev, void *buffer, uint64_t bytes, uint64_t offset)
{
	struct fake *fake = (struct fake *)dev;

	(void)offset;
	fake->read++;
	if (fake->read_error)
		return fake->read_error;
	memset(buffer, 'r', bytes);
	return 0;
}

static const struct dev_ops fake_ops = { .submit = fake_submit, .read = fake_read };

/* gates: so many submits go through before the next one waits. */
static void fake_init(struct fake *fake, unsigned gates)
{
	memset(fake, 0, sizeof(*fake));
	fake->dev.ops = &fake_ops;
	assert_int_equal(sem_init(&fake->gate, 0, gates), 0);
	assert_int_equal(sem_init(&fake->answered, 0, 0), 0);
}

static void fake_fini(struct fake *fake)
{
	sem_destroy(&fake->gate);
	sem_destroy(&fake->answered);
}

static void on_handed_back(struct dev_io *io)
{
	struct request *request = (struct request *)io;

	request->handed_back++;
	request->place = ++request->fake->handed_back;
	sem_post(&request->fake->answered);
}

static void request_init(struct request *request, struct fake *fake, void *buffer)
{
	memset(request, 0, sizeof(*request));
	request->fake = fake;
	request->io = (struct dev_io){
		.magic = DEV_IO_MAGIC,
		.buffer = buffer,
		.bytes = SEG_PAGE,
		.nowait = true,
		.queue = (struct dev_queue *)(void *)fake,
		.device = &fake->dev,
		.handed_back = on_handed_back,
	};
}

static void await(struct fake *fake, unsigned answers)
{
	for (unsigned i = 0; i < answers; i++)
		while (sem_wait(&fake->answered) != 0)
			assert_int_equal(errno, EINTR);
}

static void without_a_request_it_ends_at_once(void **state)
{
	struct submitter *submitter = submitter_create();

	(void)state;
	assert_non_null(submitter);
	submitter_destroy(submitter);
	submitter_destroy(NULL);
}

static void a_refused_request_that_cannot_be_read_is_handed_back_with_the_error(void **state)
{
	struct submitter *submitter = submitter_create();
	struct request request;
	struct fake fake;
	char buffer[SEG_PAGE];

	(void)state;
	fake_init(&fake, MANY);
	fake.refuse = true;
	fake.read_error = -EIO;
	request_init(&request, &fake, buffer);
	submitter_take(submitter, &request.io, 0);
	await(&fake, 1);
	submitter_destroy(submitter);
	assert_int_equal(request.io.result, -EIO);
	assert_int_equal(request.handed_back, 1);
	assert_int_equal(fake.read, 1);
	fake_fini(&fake);
}

/* Whoever hands a request over waits for the device then. */
static void without_a_thread_the_caller_reads(void **state)
{
	struct submitter *submitter = submitter_create();
	struct request request;
	struct fake fake;
	char buffer[SEG_PAGE];

	(void)state;
#ifndef FS_FAULTS
	submitter_destroy(submitter);
	skip();
#endif
	fake_init(&fake, MANY);
	fake.refuse = true;
	request_init(&request, &fake, buffer);
	fault_arm(FAULT_thread_start, FAULT_ALWAYS, 0);
	submitter_take(submitter, &request.io, 0);
	fault_disarm_all();
	assert_int_equal(request.handed_back, 1);
	assert_int_equal(request.io.result, SEG_PAGE);
	assert_true(pthread_equal(fake.thread, pthread_self()));
	submitter_destroy(submitter);
	fake_fini(&fake);
}

static void a_refused_request_is_read_in_place(void **state)
{
	struct submitter *submitter = submitter_create();
	struct request request;
	struct fake fake;
	char buffer[SEG_PAGE];

	(void)state;
	memset(buffer, 0, sizeof(buffer));
	fake_init(&fake, MANY);
	fake.refuse = true;
	request_init(&request, &fake, buffer);
	submitter_take(submitter, &request.io, 0);
	await(&fake, 1);
	submitter_destroy(submitter);
	assert_int_equal(request.io.result, SEG_PAGE);
	assert_int_equal(buffer[SEG_PAGE - 1], 'r');
	assert_int_equal(request.handed_back, 1);
	fake_fini(&fake);
}

static void a_request_that_the_queue_takes_is_not_handed_back(void **state)
{
	struct submitter *submitter = submitter_create();
	struct request request;
	struct fake fake;

	(void)state;
	fake_init(&fake, MANY);
	request_init(&request, &fake, NULL);
	submitter_take(submitter, &request.io, 0);
	await(&fake, 1);
	submitter_destroy(submitter);
	assert_int_equal(fake.submitted, 1);
	assert_int_equal(fake.read, 0);
	assert_int_equal(request.handed_back, 0);
	assert_false(pthread_equal(fake.thread, pthread_self())); /* a worker would have blocked */
	fake_fini(&fake);
}

/* A device that blocks holds up the submitter, and not those who give it more. */
static void requests_wait_in_order_while_the_device_blocks(void **state)
{
	struct submitter *submitter = submitter_create();
	struct request *requests = mem_must_zalloc(MANY * sizeof(*requests));
	struct fake fake;

	(void)state;
	fake_init(&fake, 0);
	for (unsigned i = 0; i < MANY; i++) {
		request_init(&requests[i], &fake, NULL);
		submitter_take(submitter, &requests[i].io, 0);
	}
	for (unsigned i = 0; i < MANY; i++)
		sem_post(&fake.gate);
	await(&fake, MANY);
	submitter_destroy(submitter);
	assert_int_equal(fake.submitted, MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_ptr_equal(fake.order[i], &requests[i].io);
	mem_free(requests);
	fake_fini(&fake);
}

/* The fault point's: held back and handed back, without being submitted or read, those that came first first. */
static void held_requests_are_only_handed_back(void **state)
{
	struct submitter *submitter = submitter_create();
	struct request requests[5], direct;
	struct fake fake;

	(void)state;
	fake_init(&fake, MANY);
	for (unsigned i = 0; i < 5; i++) {
		request_init(&requests[i], &fake, NULL);
		requests[i].io.result = 1000 + i;
		submitter_take(submitter, &requests[i].io, 5);
	}
	request_init(&direct, &fake, NULL);
	submitter_take(submitter, &direct.io, 0);
	await(&fake, 6);
	submitter_destroy(submitter);
	assert_int_equal(fake.submitted, 1);
	assert_int_equal(fake.read, 0);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(requests[i].handed_back, 1);
		assert_int_equal(requests[i].place, i + 1);
		assert_int_equal(requests[i].io.result, 1000 + i);
	}
	fake_fini(&fake);
}

/* It isn't waited for: the end hands it back at once, an hour early. */
static void the_end_hands_held_requests_back(void **state)
{
	struct submitter *submitter = submitter_create();
	struct request requests[3];
	struct fake fake;

	(void)state;
	fake_init(&fake, MANY);
	for (unsigned i = 0; i < 3; i++) {
		request_init(&requests[i], &fake, NULL);
		submitter_take(submitter, &requests[i].io, 3600000);
	}
	submitter_destroy(submitter);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(requests[i].handed_back, 1);
	fake_fini(&fake);
}

static void the_end_waits_for_requests_that_are_not_submitted_yet(void **state)
{
	struct submitter *submitter = submitter_create();
	struct request *requests = mem_must_zalloc(MANY * sizeof(*requests));
	struct fake fake;

	(void)state;
	fake_init(&fake, MANY);
	for (unsigned i = 0; i < MANY; i++) {
		request_init(&requests[i], &fake, NULL);
		submitter_take(submitter, &requests[i].io, 0);
	}
	submitter_destroy(submitter);
	assert_int_equal(fake.submitted, MANY);
	mem_free(requests);
	fake_fini(&fake);
}

/* ---- several threads ------------------------------------------------------------------------- */

struct giver {
	struct submitter *submitter;
	struct request *requests;
};

static void *give_all(void *context)
{
	struct giver *giver = context;

	for (unsigned i = 0; i < MANY; i++)
		submitter_take(giver->submitter, &giver->requests[i].io, 0);
	return NULL;
}

static void each_request_of_several_threads_is_answered_once(void **state)
{
	struct submitter *submitter = submitter_create();
	struct request *requests = mem_must_zalloc(THREADS * MANY * sizeof(*requests));
	uint8_t *buffers = mem_must_zalloc((uint64_t)THREADS * MANY * SEG_PAGE);
	struct giver givers[THREADS];
	pthread_t threads[THREADS];
	struct fake fake;

	(void)state;
	fake_init(&fake, THREADS * MANY);
	fake.refuse = true;
	for (unsigned i = 0; i < THREADS * MANY; i++)
		request_init(&requests[i], &fake, buffers + (uint64_t)i * SEG_PAGE);
	for (unsigned i = 0; i < THREADS; i++) {
		givers[i] = (struct giver){ submitter, requests + (uint64_t)i * MANY };
		assert_int_equal(pthread_create(&threads[i], NULL, give_all, &givers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	await(&fake, THREADS * MANY);
	submitter_destroy(submitter);
	assert_int_equal(fake.read, THREADS * MANY);
	for (unsigned i = 0; i < THREADS * MANY; i++) {
		assert_int_equal(requests[i].handed_back, 1);
		assert_int_equal(requests[i].io.result, SEG_PAGE);
		assert_int_equal(buffers[(uint64_t)i * SEG_PAGE], 'r');
	}
	mem_free(buffers);
	mem_free(requests);
	fake_fini(&fake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_request_it_ends_at_once),
		cmocka_unit_test(a_refused_request_that_cannot_be_read_is_handed_back_with_the_error),
		cmocka_unit_test(without_a_thread_the_caller_reads),
		cmocka_unit_test(a_refused_request_is_read_in_place),
		cmocka_unit_test(a_request_that_the_queue_takes_is_not_handed_back),
		cmocka_unit_test(requests_wait_in_order_while_the_device_blocks),
		cmocka_unit_test(held_requests_are_only_handed_back),
		cmocka_unit_test(the_end_hands_held_requests_back),
		cmocka_unit_test(the_end_waits_for_requests_that_are_not_submitted_yet),
		cmocka_unit_test(each_request_of_several_threads_is_answered_once),
	};

	return cmocka_run_group_tests_name("submitter", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Homes: who may be reading from a device, told from whoever reads elsewhere, with threads that come and go. */
#include <pthread.h>
#include <sched.h>

#include "tests/unit/segments/fixture.h"

#define SEGMENT (64u << 10)

static struct flash flash;

static int setup(void **state)
{
	(void)state;
	return flash_open_ram(&flash, 4, SEGMENT, 16, NULL);
}

static int teardown(void **state)
{
	(void)state;
	flash_close(&flash);
	return 0;
}

/* The homes of all segments change, as in a move. The other device is never read here. */
static void move_homes(unsigned number)
{
	flash.seg->devices[number] = flash.seg->device;
	for (uint32_t n = 0; n < 4; n++)
		atomic_store(&flash.seg->live[n].home, seg_offset_by_number(flash.seg, n) + number);
}

static void only_reads_of_that_device_count(void **state)
{
	struct home_user one, other;
	struct seg_home home;

	(void)state;
	home_user_init(flash.seg, &one);
	home_user_init(flash.seg, &other);
	assert_false(homes_in_use(flash.seg, 0) || homes_in_use(flash.seg, 1));
	home = home_enter(flash.seg, &one, 2);
	assert_int_equal(home.number, 0);
	assert_int_equal(home.offset, seg_offset_by_number(flash.seg, 2));
	assert_true(home.device == flash.seg->device);
	(void)home_enter(flash.seg, &one, 3);
	assert_true(homes_in_use(flash.seg, 0));
	assert_false(homes_in_use(flash.seg, 1));
	move_homes(1);
	assert_int_equal(home_enter(flash.seg, &other, 2).number, 1);
	home_leave(&one, 0);
	assert_true(homes_in_use(flash.seg, 0));
	home_leave(&one, 0);
	assert_false(homes_in_use(flash.seg, 0));
	assert_true(homes_in_use(flash.seg, 1));
	home_leave(&other, 1);
	home_user_fini(flash.seg, &one);
	assert_false(homes_in_use(flash.seg, 1));
	home_user_fini(flash.seg, &other);
	assert_null(flash.seg->users);
}

static void users_leave_in_any_order(void **state)
{
	struct home_user user[3];

	(void)state;
	for (unsigned first = 0; first < 3; first++) {
		for (unsigned i = 0; i < 3; i++)
			home_user_init(flash.seg, &user[i]);
		for (unsigned i = 0; i < 3; i++) {
			struct home_user *leaves = &user[(first + i) % 3];

			(void)home_enter(flash.seg, leaves, 1);
			assert_true(homes_in_use(flash.seg, 0));
			home_leave(leaves, 0);
			home_user_fini(flash.seg, leaves);
		}
		assert_null(flash.seg->users);
	}
}

/* A thread that reads all the time. A device is marked as closed when nobody uses it and it is no home any more: then no
   read may be there until it is a home again. */
struct client {
	pthread_t thread;
	_Atomic bool *stop;
	_Atomic bool *closed; /* by the device's number */
	_Atomic unsigned *wrong, *rounds;
};

static void *read_on(void *context)
{
	struct client *client = context;
	struct home_user user;

	home_user_init(flash.seg, &user);
	for (uint32_t n = 0; !atomic_load(client->stop); n++) {
		struct seg_home home = home_enter(flash.seg, &user, n % 4);

		atomic_fetch_add(client->wrong, atomic_load(&client->closed[home.number]));
		if (n % 64 == 0)
			sched_yield();
		atomic_fetch_add(client->wrong, atomic_load(&client->closed[home.number]));
		home_leave(&user, home.number);
		atomic_fetch_add(client->rounds, 1);
		if (n % 256 == 255) { /* another thread comes in its place */
			home_user_fini(flash.seg, &user);
			home_user_init(flash.seg, &user);
		}
	}
	home_user_fini(flash.seg, &user);
	return NULL;
}

static void nobody_reads_from_a_device_that_was_closed(void **state)
{
	_Atomic bool stop = false, closed[SEG_DEVICES] = { false, true };
	_Atomic unsigned wrong = 0, rounds = 0;
	struct client client[3];

	(void)state;
	flash.seg->devices[1] = flash.seg->device;
	for (unsigned i = 0; i < 3; i++) {
		client[i] = (struct client){ .stop = &stop, .closed = closed, .wrong = &wrong, .rounds = &rounds };
		assert_int_equal(pthread_create(&client[i].thread, NULL, read_on, &client[i]), 0);
	}
	for (unsigned turn = 0; turn < 500; turn++) {
		unsigned to = 1 - turn % 2, before = atomic_load(&rounds);

		atomic_store(&closed[to], false);
		move_homes(to);
		while (homes_in_use(flash.seg, 1 - to))
			sched_yield();
		atomic_store(&closed[1 - to], true);
		while (turn % 10 == 0 && atomic_load(&rounds) < before + 10)
			sched_yield();
	}
	atomic_store(&stop, true);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(client[i].thread, NULL);
	assert_int_equal(atomic_load(&wrong), 0);
	move_homes(0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(only_reads_of_that_device_count, setup, teardown),
		cmocka_unit_test_setup_teardown(users_leave_in_any_order, setup, teardown),
		cmocka_unit_test_setup_teardown(nobody_reads_from_a_device_that_was_closed, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clients: fibers with a worker of the store and some connections each, which ask at random and tell the model. A
 * connection has one command under way at a time.
 */
#ifndef FS_TESTS_SCHED_CLIENTS_H
#define FS_TESTS_SCHED_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;
struct world;

/* Starts them. They stop after so many commands, or when clients_stop was called. */
void clients_begin(struct world *world, struct store *store, uint64_t seed, uint64_t commands);
/* Are some still at it? */
bool clients_run(void);
/* Is it the fiber of a client, or of main, which reads and sets keys like one? */
bool clients_is_one(unsigned fiber);
/* They begin no further command. */
void clients_stop(void);
/* Returns when all have stopped, with nothing under way and their workers destroyed. */
void clients_join(void);
/* A fiber that is no client does something with a key; clients may choose it next. Any fiber. */
void clients_hear(const char *key, size_t length);
/* Reads each key once, and returns how many were found. In the caller's fiber, alone or beside clients. */
uint64_t clients_read_all(struct world *world, struct store *store);
/* Sets some keys; in the caller's fiber. A set that isn't stored is a finding. */
void clients_set_some(struct world *world, struct store *store, uint64_t seed);

#endif

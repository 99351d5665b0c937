/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Answers that wait for the journal (state/losses.h). Such a request is done but for its answer: its effect is there, and
 * its result is filled in. The worker's next poll after the ticket is durable calls its done.
 */
#include "server/store/request/request_internal.h"

static bool park_until(struct store_worker *worker, struct store_request *request, uint64_t ticket)
{
	if (ticket == 0)
		return false;
	request->ticket = ticket;
	request->next_parked = NULL;
	if (worker->parked_last)
		worker->parked_last->next_parked = request;
	else
		worker->parked_first = request;
	worker->parked_last = request;
	worker->pending++;
	return true;
}

bool request_park(struct store_worker *worker, struct store_request *request, uint32_t tag)
{
	return park_until(worker, request, losses_ticket(worker->context.store->losses, tag));
}

bool store_flush(struct store_worker *worker, struct store_request *request, int64_t exptime)
{
	const struct losses *losses = worker->context.store->losses;

	request->op = STORE_FLUSH;
	request->result = STORE_FLUSHED;
	store_flush_all(worker->context.store, exptime);
	return !losses || !park_until(worker, request, losses_barrier(losses));
}

bool parked_ready(const struct store_worker *worker)
{
	const struct losses *losses = worker->context.store->losses;

	if (!worker->parked_first)
		return false;
	/* First the mark, then the look: the writer publishes first and then looks at the mark. */
	atomic_store(&worker->waiter->waits, true);
	return journal_durable(losses->journal) >= worker->parked_first->ticket;
}

void parked_flush(struct store_worker *worker)
{
	if (worker->parked_first)
		(void)losses_step(worker->context.store->losses);
}

void parked_poll(struct store_worker *worker)
{
	struct store_request *last = worker->parked_last;

	if (!last)
		return;
	while (last && parked_ready(worker)) {
		struct store_request *request = worker->parked_first;

		if (request == last)
			last = NULL; /* one that is parked by done waits for the next poll */
		worker->parked_first = request->next_parked;
		if (!worker->parked_first)
			worker->parked_last = NULL;
		worker->pending--;
		request->done(request);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows of the address space and their numbers, for all stores of the process. */
#include "server/store/dram/address.h"

#include "base/lock.h"

uintptr_t address_base[ADDRESS_WINDOWS];
_Atomic uint8_t address_number[1u << (ADDRESS_BITS - ADDRESS_WINDOW_BITS)];

static struct lock learning = LOCK_INITIALIZER(LOCK_LEAF); /* covers the next, and writes to the two above */
static unsigned learned;

bool address_learn(const void *memory)
{
	uintptr_t window = (uintptr_t)memory >> ADDRESS_WINDOW_BITS;
	bool known;

	if ((uintptr_t)memory >> ADDRESS_BITS != 0)
		return false; /* its number would be another address's */
	lock_acquire(&learning);
	known = address_window(memory) != 0;
	if (!known && learned + 1 < ADDRESS_WINDOWS) {
		address_base[++learned] = window << ADDRESS_WINDOW_BITS;
		atomic_store_explicit(&address_number[window], (uint8_t)learned, memory_order_release);
		known = true;
	}
	lock_release(&learning);
	return known;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Which protocol a connection speaks. */
#include "server/proto/proto.h"

#include "base/log.h"

#define BINARY_REQUEST 0x80 /* the magic byte of memcached's binary protocol */

const struct protocol *proto_choose(unsigned char first)
{
	if (first == BINARY_REQUEST) {
		log_debug("a client speaks the binary protocol, which is not offered: closed");
		return NULL;
	}
	return &proto_text;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Which protocol a connection speaks. */
#include "server/proto/proto.h"

#include "conf/conf.h"
#include "server/proto/binary.h"

const struct protocol *proto_choose(const struct conf *conf, int binding, unsigned char first)
{
	if (conf->enable_sasl || binding == CONF_PROTOCOL_BINARY)
		return &proto_binary;
	if (conf->auth_file || binding == CONF_PROTOCOL_ASCII)
		return &proto_text;
	return first == BINARY_MAGIC_REQUEST ? &proto_binary : &proto_text;
}

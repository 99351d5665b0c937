/* SPDX-License-Identifier: BSD-3-Clause */
/* The words in front of an address of -l. */
#include "conf/listen.h"

#include <string.h>

#define TAG_MAX 8

/* The rest of the text. */
struct rest {
	const char *at, *end;
};

static bool passes(struct rest *rest, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(rest->end - rest->at) < length || memcmp(rest->at, word, length) != 0)
		return false;
	rest->at += length;
	return true;
}

/* Reads "NAME]:", where closing is the bracket, and the colon may be missing at the end. */
static bool read_name(struct rest *rest, char closing, struct rest *name)
{
	const char *end = memchr(rest->at, closing, (size_t)(rest->end - rest->at));

	if (!end)
		return false;
	*name = (struct rest){ rest->at, end };
	rest->at = end + 1;
	return passes(rest, ":");
}

static bool is_word(struct rest name, const char *word)
{
	return (size_t)(name.end - name.at) == strlen(word) && memcmp(name.at, word, strlen(word)) == 0;
}

static int read_tls(const struct conf *conf, struct rest *rest, struct conf_listen *out, char *why)
{
	static const char *const words[] = {
		[CONF_LISTEN_TLS_OFF] = "notls:",
		[CONF_LISTEN_TLS_NO_PEER] = "btls:",
		[CONF_LISTEN_TLS_PEER] = "mtls:",
	};

	for (int tls = CONF_LISTEN_TLS_OFF; tls <= CONF_LISTEN_TLS_PEER; tls++) {
		if (!passes(rest, words[tls]))
			continue;
		if (!conf->enable_ssl) {
			snprintf(why, CONF_LISTEN_WHY_BYTES, "'%.*s' option is valid only when SSL is enabled",
				 (int)strlen(words[tls]) - 1, words[tls]);
			return FS_EINVAL;
		}
		if (tls == CONF_LISTEN_TLS_PEER && !conf->ssl_ca_cert) {
			snprintf(why, CONF_LISTEN_WHY_BYTES,
				 "'mtls' needs -o ssl_ca_cert, which vouches for the clients");
			return FS_EINVAL;
		}
		out->tls = (enum conf_listen_tls)tls;
		return FS_OK;
	}
	return FS_OK;
}

static int take_protocol(const struct conf *conf, struct rest name, struct conf_listen *out, char *why)
{
	if (is_word(name, "ascii"))
		out->protocol = CONF_PROTOCOL_ASCII;
	else if (is_word(name, "binary"))
		out->protocol = CONF_PROTOCOL_BINARY;
	else if (is_word(name, "negotiating"))
		out->protocol = CONF_PROTOCOL_AUTO;
	else {
		snprintf(why, CONF_LISTEN_WHY_BYTES,
			 "\"%.*s\" is none of proto[ascii], proto[binary], proto[negotiating]",
			 (int)(name.end - name.at < 40 ? name.end - name.at : 40), name.at);
		return FS_EINVAL;
	}
	if (conf->enable_sasl && out->protocol == CONF_PROTOCOL_ASCII) {
		snprintf(why, CONF_LISTEN_WHY_BYTES, "Cannot use the ascii protocol when SASL is enabled");
		return FS_EINVAL;
	}
	if (conf->auth_file && out->protocol == CONF_PROTOCOL_BINARY) {
		snprintf(why, CONF_LISTEN_WHY_BYTES, "Cannot use binary protocol when ascii authentication enabled");
		return FS_EINVAL;
	}
	return FS_OK;
}

static int read_protocol(const struct conf *conf, struct rest *rest, struct conf_listen *out, char *why)
{
	struct rest before = *rest, name;

	if (!passes(rest, "proto["))
		return FS_OK;
	if (read_name(rest, ']', &name))
		return take_protocol(conf, name, out, why);
	snprintf(why, CONF_LISTEN_WHY_BYTES, "Invalid protocol spec: \"%.*s\"", (int)(before.end - before.at),
		 before.at);
	*rest = before;
	return FS_EINVAL;
}

static int read_tag(struct rest *rest, char *why)
{
	struct rest before = *rest, name;
	char closing = passes(rest, "tag[") ? ']' : passes(rest, "tag_") ? '_' : 0;

	if (!closing)
		return FS_OK;
	if (!read_name(rest, closing, &name)) {
		snprintf(why, CONF_LISTEN_WHY_BYTES, "Invalid tag in socket config: \"%.*s\"",
			 (int)(before.end - before.at), before.at);
		*rest = before;
		return FS_EINVAL;
	}
	if (name.end == name.at || name.end - name.at > TAG_MAX) {
		snprintf(why, CONF_LISTEN_WHY_BYTES, "Listener tags must be between 1 and %d characters: \"%.*s\"",
			 TAG_MAX, (int)(name.end - name.at), name.at);
		return FS_EINVAL;
	}
	return FS_OK;
}

int conf_listen_read(const struct conf *conf, const char *text, size_t length, struct conf_listen *out,
		     char why[CONF_LISTEN_WHY_BYTES])
{
	struct rest rest = { text, text + length };
	int code;

	*out = (struct conf_listen){ .tls = CONF_LISTEN_TLS_BY_Z,
				     .protocol = (enum conf_protocol)conf->binding_protocol };
	code = read_tls(conf, &rest, out, why);
	if (code == FS_OK)
		code = read_protocol(conf, &rest, out, why);
	if (code == FS_OK)
		code = read_tag(&rest, why);
	out->address = rest.at;
	return code;
}

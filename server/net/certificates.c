/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS's certificates and settings. They are read at the start, and again by refresh_certs and SIGHUP. */
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics/counters.h"
#include "conf/conf.h"
#include "server/net/net_internal.h"

/* As the options name them, or from the root: with -d the daemon leaves its folder before it reads them again. */
struct certificate_files {
	char *chain, *key, *authorities; /* key: may be the chain's file; authorities: NULL for none */
};

struct certificates {
	const struct conf *conf;
	struct certificate_files files; /* from the root; constant */
	struct lock lock;
	SSL_CTX *context; /* covered by lock; each session keeps its own alive */
	_Atomic uint64_t read_at;
	_Atomic int64_t expires_at; /* wall seconds; 0: not known */
	_Atomic uint64_t failures; /* of certificates_refresh */
	_Atomic bool failed; /* the last one */
};

/* Makes the reason in memcached's form, with the file and the first cause that OpenSSL tells. */
static int certificates_error(char reason[256], const char *what, const char *file)
{
	char cause[160];

	ERR_error_string_n(ERR_get_error(), cause, sizeof(cause));
	snprintf(reason, 256, "Error loading the %s: %.80s : %.120s", what, file, cause);
	ERR_clear_error();
	return FS_ERANGE;
}

/* Once the daemon serves, there is no terminal that could be asked for a passphrase. */
static int no_passphrase(char *out, int size, int writing, void *context)
{
	(void)out;
	(void)size;
	(void)writing;
	(void)context;
	return 0;
}

static int count_session(SSL *ssl, SSL_SESSION *session)
{
	(void)ssl;
	(void)session;
	ctr_add(CTR_ssl_new_sessions, 1);
	return 0; /* OpenSSL's own cache keeps it */
}

static void set_sessions(SSL_CTX *context, const struct conf *conf)
{
	static const unsigned char name[] = "memcached";

	/* A client with a certificate can't resume a session without this. */
	SSL_CTX_set_session_id_context(context, name, sizeof(name) - 1);
	if (conf->ssl_session_cache) {
		SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_SERVER);
		SSL_CTX_sess_set_new_cb(context, count_session);
	} else {
		SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	}
}

static void set_verification(SSL_CTX *context, int mode)
{
	static const int modes[] = {
		SSL_VERIFY_NONE,
		SSL_VERIFY_PEER,
		SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
		SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT | SSL_VERIFY_CLIENT_ONCE,
	};

	SSL_CTX_set_verify(context, modes[mode], NULL);
}

static void set_up_context(SSL_CTX *context, const struct conf *conf)
{
	static const int versions[] = { TLS1_VERSION, TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION };

	SSL_CTX_set_min_proto_version(context, versions[conf->ssl_min_version]);
	/* A client may end without TLS's close_notify: an incomplete command is not executed anyhow. */
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
					  SSL_MODE_RELEASE_BUFFERS);
	if (conf->ssl_kernel_tls)
		SSL_CTX_set_options(context, SSL_OP_ENABLE_KTLS); /* it needs all bytes of the socket for itself */
	else
		SSL_CTX_set_read_ahead(context, 1);
	set_sessions(context, conf);
	set_verification(context, conf->ssl_verify_mode);
}

static struct certificate_files files_of(const struct conf *conf)
{
	return (struct certificate_files){ .chain = conf->ssl_chain_cert,
					   .key = conf->ssl_key ? conf->ssl_key : conf->ssl_chain_cert,
					   .authorities = conf->ssl_ca_cert };
}

static int read_files(SSL_CTX *context, const struct conf *conf, const struct certificate_files *files,
		      char reason[256])
{
	const char *chain = files->chain, *key = files->key, *authorities = files->authorities;

	if (!chain) {
		snprintf(reason, 256, "Error loading the certificate chain: TLS (-Z) needs -o ssl_chain_cert");
		return FS_ERANGE;
	}
	if (SSL_CTX_use_certificate_chain_file(context, chain) != 1)
		return certificates_error(reason, "certificate chain", chain);
	if (SSL_CTX_use_PrivateKey_file(context, key, conf->ssl_keyformat) != 1)
		return certificates_error(reason, "key", key);
	if (SSL_CTX_check_private_key(context) != 1)
		return certificates_error(reason, "key", key);
	if (authorities && SSL_CTX_load_verify_locations(context, authorities, NULL) != 1)
		return certificates_error(reason, "CA certificate", authorities);
	if (authorities) /* clients with several certificates choose by these names */
		SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(authorities));
	if (conf->ssl_ciphers && SSL_CTX_set_cipher_list(context, conf->ssl_ciphers) != 1) {
		snprintf(reason, 256, "Error setting the provided cipher(s): %.200s", conf->ssl_ciphers);
		ERR_clear_error();
		return FS_ERANGE;
	}
	return FS_OK;
}

/* serving: a key's passphrase can't be asked for on a terminal. */
static int make_context(SSL_CTX **out, const struct conf *conf, const struct certificate_files *files, bool serving,
			char reason[256])
{
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	int code;

	if (!context) {
		snprintf(reason, 256, "TLS: out of memory");
		return FS_ENOMEM;
	}
	if (serving)
		SSL_CTX_set_default_passwd_cb(context, no_passphrase);
	set_up_context(context, conf);
	code = read_files(context, conf, files, reason);
	if (code == FS_OK)
		*out = context;
	else
		SSL_CTX_free(context);
	return code;
}

/* ---- expiry and renewal ------------------------------------------------------------------------ */

static int64_t expiry_of(const X509 *certificate)
{
	struct tm end;

	return certificate && ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end) == 1 ? (int64_t)timegm(&end) : 0;
}

/* The end of the first of the chain that expires, as clients then refuse all of it. */
static int64_t context_expiry(SSL_CTX *context)
{
	int64_t first = expiry_of(SSL_CTX_get0_certificate(context));
	STACK_OF(X509) *chain = NULL;

	SSL_CTX_get0_chain_certs(context, &chain);
	for (int i = 0; chain && i < sk_X509_num(chain); i++) {
		int64_t expiry = expiry_of(sk_X509_value(chain, i));

		if (expiry != 0 && expiry < first)
			first = expiry;
	}
	return first;
}

static void warn_unreadable(const char *option, const char *file)
{
	if (file && faccessat(AT_FDCWD, file, R_OK, AT_EACCESS) != 0)
		log_warn(
			"-o %s: the user that the daemon runs as can't read %s (%m): a renewed certificate will need a "
			"restart",
			option, file);
}

void net_warn_renewal(const struct conf *conf)
{
	if (!conf->enable_ssl)
		return;
	warn_unreadable("ssl_chain_cert", conf->ssl_chain_cert);
	warn_unreadable("ssl_key", conf->ssl_key);
	warn_unreadable("ssl_ca_cert", conf->ssl_ca_cert);
}

void certificates_get_status(const struct certificates *certificates, struct net_status *out)
{
	if (!certificates)
		return;
	out->certificates_at = atomic_load(&certificates->read_at);
	out->certificates_expire_at = atomic_load(&certificates->expires_at);
	out->certificate_failures = atomic_load(&certificates->failures);
	out->certificates_failed = atomic_load(&certificates->failed);
}

/* ---- the public part --------------------------------------------------------------------------- */

int certificates_open(struct certificates **out, const struct conf *conf, char reason[256])
{
	struct certificates *certificates = mem_must_zalloc(sizeof(*certificates));
	const struct certificate_files files = files_of(conf);
	int code = make_context(&certificates->context, conf, &files, false, reason);

	if (code != FS_OK) {
		mem_free(certificates);
		return code;
	}
	certificates->conf = conf;
	certificates->files.chain = conf_absolute(files.chain);
	certificates->files.key = conf_absolute(files.key);
	certificates->files.authorities = files.authorities ? conf_absolute(files.authorities) : NULL;
	lock_init(&certificates->lock, LOCK_LEAF);
	atomic_init(&certificates->read_at, (uint64_t)clk_wall_seconds());
	atomic_init(&certificates->expires_at, context_expiry(certificates->context));
	*out = certificates;
	return FS_OK;
}

void certificates_close(struct certificates *certificates)
{
	if (!certificates)
		return;
	SSL_CTX_free(certificates->context);
	free(certificates->files.chain);
	free(certificates->files.key);
	free(certificates->files.authorities);
	lock_fini(&certificates->lock);
	mem_free(certificates);
}

int certificates_refresh(struct certificates *certificates, char reason[256])
{
	SSL_CTX *fresh, *old;
	int code = make_context(&fresh, certificates->conf, &certificates->files, true, reason);

	atomic_store(&certificates->failed, code != FS_OK);
	if (code != FS_OK) {
		atomic_fetch_add(&certificates->failures, 1);
		return code;
	}
	atomic_store(&certificates->expires_at, context_expiry(fresh));
	lock_acquire(&certificates->lock);
	old = certificates->context;
	certificates->context = fresh;
	lock_release(&certificates->lock);
	SSL_CTX_free(old);
	atomic_store(&certificates->read_at, (uint64_t)clk_wall_seconds());
	return FS_OK;
}

SSL *certificates_session(struct certificates *certificates, int verify)
{
	SSL_CTX *context;
	SSL *session;

	lock_acquire(&certificates->lock);
	context = certificates->context;
	SSL_CTX_up_ref(context);
	lock_release(&certificates->lock);
	session = SSL_new(context);
	SSL_CTX_free(context);
	if (session && verify != VERIFY_AS_SET)
		SSL_set_verify(session, verify, NULL);
	return session;
}

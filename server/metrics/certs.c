/* SPDX-License-Identifier: BSD-3-Clause */
#include "server/metrics/certs.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/lock.h"
#include "conf/conf.h"

struct certs_set {
	gnutls_certificate_credentials_t credentials;
	bool asks; /* clients need a certificate */
	_Atomic unsigned holders; /* connections, and the struct certs while it is the set in use */
};

struct certs {
	/* Paths from the root, as with -d the daemon leaves its folder; ca: NULL for none. Constant. */
	char *cert, *key, *ca;
	struct lock lock;
	struct certs_set *set; /* covered by lock */
	_Atomic int64_t expires_at; /* of set */
};

/* ---- a set ------------------------------------------------------------------------------------ */

static int certs_fault(char reason[256], const char *option, const char *file, const char *why)
{
	snprintf(reason, 256, "--%s: %.120s: %.80s", option, file, why);
	return FS_EINVAL;
}

/* GnuTLS' errors don't tell which of two files can't be read. */
static int check_readable(const char *option, const char *file, char reason[256])
{
	return access(file, R_OK) == 0 ? FS_OK : certs_fault(reason, option, file, strerror(errno));
}

static int read_chain(gnutls_certificate_credentials_t credentials, const struct certs *certs, char reason[256])
{
	int code = check_readable("metrics-tls-cert", certs->cert, reason), error;

	if (code == FS_OK)
		code = check_readable("metrics-tls-key", certs->key, reason);
	if (code != FS_OK)
		return code;
	/* Without a passphrase: there is no terminal that could be asked for one. */
	error = gnutls_certificate_set_x509_key_file2(credentials, certs->cert, certs->key, GNUTLS_X509_FMT_PEM, NULL,
						      0);
	if (error >= 0)
		return FS_OK;
	if (error == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
		return certs_fault(reason, "metrics-tls-key", certs->key, "the key is not that of --metrics-tls-cert");
	return certs_fault(reason, "metrics-tls-cert", certs->cert, gnutls_strerror(error));
}

static int read_authorities(struct certs_set *set, const char *ca, char reason[256])
{
	int code = check_readable("metrics-tls-ca", ca, reason), count;

	if (code != FS_OK)
		return code;
	count = gnutls_certificate_set_x509_trust_file(set->credentials, ca, GNUTLS_X509_FMT_PEM);
	set->asks = true;
	if (count > 0)
		return FS_OK;
	return certs_fault(reason, "metrics-tls-ca", ca, count < 0 ? gnutls_strerror(count) : "it has no certificate");
}

void certs_release(struct certs_set *set)
{
	if (!set || atomic_fetch_sub(&set->holders, 1) != 1)
		return;
	gnutls_certificate_free_credentials(set->credentials);
	mem_free(set);
}

/* The set is the caller's to release. */
static int make_set(struct certs_set **out, const struct certs *certs, char reason[256])
{
	struct certs_set *set = mem_must_zalloc(sizeof(*set));
	int code;

	atomic_init(&set->holders, 1);
	if (gnutls_certificate_allocate_credentials(&set->credentials) != 0) {
		mem_free(set);
		snprintf(reason, 256, "--metrics-tls-cert: %s", fs_strerror(FS_ENOMEM));
		return FS_ENOMEM;
	}
	code = read_chain(set->credentials, certs, reason);
	if (code == FS_OK && certs->ca)
		code = read_authorities(set, certs->ca, reason);
	if (code == FS_OK)
		*out = set;
	else
		certs_release(set);
	return code;
}

/* Clients refuse all of the chain when one of it has expired. */
static int64_t first_expiry(const struct certs_set *set)
{
	gnutls_x509_crt_t *chain = NULL;
	unsigned count = 0;
	int64_t first = 0;

	if (gnutls_certificate_get_x509_crt(set->credentials, 0, &chain, &count) != 0)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		time_t expiry = gnutls_x509_crt_get_expiration_time(chain[i]);

		if (expiry != (time_t)-1 && (first == 0 || expiry < first))
			first = (int64_t)expiry;
		gnutls_x509_crt_deinit(chain[i]);
	}
	gnutls_free(chain);
	return first;
}

/* ---- the set in use ---------------------------------------------------------------------------- */

int certs_reload(struct certs *certs, char reason[256])
{
	struct certs_set *fresh, *old;
	int code = make_set(&fresh, certs, reason);

	if (code != FS_OK)
		return code;
	lock_acquire(&certs->lock);
	old = certs->set;
	certs->set = fresh;
	atomic_store(&certs->expires_at, first_expiry(fresh));
	lock_release(&certs->lock);
	certs_release(old);
	return FS_OK;
}

int certs_open(struct certs **out, const struct conf *conf, char reason[256])
{
	struct certs *certs;
	int code;

	*out = NULL;
	if (!conf->metrics_tls_cert)
		return FS_OK;
	certs = mem_must_zalloc(sizeof(*certs));
	lock_init(&certs->lock, LOCK_LEAF);
	certs->cert = conf_absolute(conf->metrics_tls_cert);
	certs->key = conf_absolute(conf->metrics_tls_key ? conf->metrics_tls_key : conf->metrics_tls_cert);
	certs->ca = conf->metrics_tls_ca ? conf_absolute(conf->metrics_tls_ca) : NULL;
	code = certs_reload(certs, reason);
	if (code == FS_OK)
		*out = certs;
	else
		certs_close(certs);
	return code;
}

void certs_close(struct certs *certs)
{
	if (!certs)
		return;
	certs_release(certs->set);
	lock_fini(&certs->lock);
	free(certs->cert);
	free(certs->key);
	free(certs->ca);
	mem_free(certs);
}

int64_t certs_expire_at(const struct certs *certs)
{
	return certs ? atomic_load(&certs->expires_at) : 0;
}

/* ---- connections ------------------------------------------------------------------------------ */

static void demand_certificate(gnutls_session_t session)
{
	static char purpose[] = GNUTLS_KP_TLS_WWW_CLIENT;
	static gnutls_typed_vdata_st wanted = { .type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)purpose };

	gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
	gnutls_session_set_verify_cert2(session, &wanted, 1, 0);
}

struct certs_set *certs_hold(struct certs *certs, void *session)
{
	struct certs_set *set;

	lock_acquire(&certs->lock);
	set = certs->set;
	atomic_fetch_add(&set->holders, 1);
	lock_release(&certs->lock);
	if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, set->credentials) != 0) {
		certs_release(set);
		return NULL;
	}
	if (set->asks)
		demand_certificate(session);
	return set;
}

static int no_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info, gnutls_pcert_st **chain,
			  unsigned *count, gnutls_ocsp_data_st **ocsp, unsigned *ocsp_count, gnutls_privkey_t *key,
			  unsigned *flags)
{
	(void)session;
	(void)info;
	(void)flags;
	*chain = NULL;
	*ocsp = NULL;
	*key = NULL;
	*count = *ocsp_count = 0;
	return -1;
}

certs_function *certs_placeholder(void)
{
	gnutls_certificate_retrieve_function3 *function = no_certificate;

	return (certs_function *)function;
}

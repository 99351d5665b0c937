/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/access.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More than the daemon takes of a user's and a password's bytes together. */
#define PASSWORD_BYTES 512

static void read_password(const char *path, char password[PASSWORD_BYTES])
{
	FILE *file = fopen(path, "re");
	bool whole = false;

	if (file) {
		setvbuf(file, NULL, _IONBF, 0); /* no copy of it stays in a buffer */
		whole = fgets(password, PASSWORD_BYTES, file) && (strchr(password, '\n') || feof(file));
		fclose(file);
	} else {
		arg_die("--password-file: %s: %s", path, strerror(errno));
	}
	if (!whole)
		arg_die("--password-file: %s: the first line is no password of less than %d bytes", path,
			PASSWORD_BYTES);
	password[strcspn(password, "\r\n")] = 0;
}

/* The server splits user and password at the first blank. */
static void make_login(struct access *access)
{
	const char *given = getenv(ACCESS_PASSWORD);
	char password[PASSWORD_BYTES] = "";
	size_t user_bytes = strlen(access->user), bytes;

	if (access->password_file)
		read_password(access->password_file, password);
	else if (given && strlen(given) < PASSWORD_BYTES)
		snprintf(password, sizeof(password), "%s", given);
	if (!password[0])
		arg_die("--user: no password is in the environment variable " ACCESS_PASSWORD
			", and --password-file is not given");
	if (user_bytes == 0 || user_bytes > 250 || strpbrk(access->user, " \r\n"))
		arg_die("--user: \"%s\" is not a name of 1 to 250 bytes without blanks", access->user);
	if (strpbrk(password, " \r\n"))
		arg_die("--user: the password has a blank or a line end in it, which no server accepts");
	bytes = user_bytes + 1 + strlen(password);
	snprintf(access->login, sizeof(access->login), "set login 0 0 %zu\r\n%s %s\r\n", bytes, access->user, password);
	OPENSSL_cleanse(password, sizeof(password));
}

static _Noreturn void refuse_file(const char *option, const char *path)
{
	const char *why = ERR_reason_error_string(ERR_peek_last_error());

	arg_die("--%s: %s: %s", option, path, errno ? strerror(errno) : why ? why : "can't be used");
}

static void make_context(struct access *access)
{
	const char *key = access->tls_key ? access->tls_key : access->tls_cert;
	SSL_CTX *context = SSL_CTX_new(TLS_client_method());

	if (!context || SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
		arg_die("--tls: OpenSSL can't be used");
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), X509_V_FLAG_PARTIAL_CHAIN);
	signal(SIGPIPE, SIG_IGN); /* OpenSSL writes to sockets whose peer may have closed */
	errno = 0;
	if (!access->tls_ca)
		SSL_CTX_set_default_verify_paths(context);
	else if (SSL_CTX_load_verify_file(context, access->tls_ca) != 1)
		refuse_file("tls-ca", access->tls_ca);
	if (access->tls_cert && SSL_CTX_use_certificate_chain_file(context, access->tls_cert) != 1)
		refuse_file("tls-cert", access->tls_cert);
	if (access->tls_cert && SSL_CTX_use_PrivateKey_file(context, key, SSL_FILETYPE_PEM) != 1)
		refuse_file("tls-key", key);
	access->context = context;
}

void access_open(struct access *access)
{
	if (access->password_file && !access->user)
		arg_die("--password-file: needs --user");
	if (access->tls_key && !access->tls_cert)
		arg_die("--tls-key: needs --tls-cert");
	if (access->user)
		make_login(access);
	if (access->tls || access->tls_ca || access->tls_cert || access->tls_name)
		make_context(access);
}

void access_close(struct access *access)
{
	SSL_CTX_free(access->context);
	access->context = NULL;
	OPENSSL_cleanse(access->login, sizeof(access->login));
}

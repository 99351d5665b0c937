/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binds the sockets that the options name: -p and -U on each of -l's addresses, or -s. An error has memcached's words,
 * and names the process that has the port.
 */
#include "server/net/net_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "conf/conf.h"
#include "conf/listen.h"

/* The socket that is being bound, and the reason why the last one could not be. */
struct binding {
	struct net *net;
	int type; /* SOCK_STREAM or SOCK_DGRAM */
	struct reception reception; /* TCP: of the connections */
	bool only_checks; /* resolves names, and binds nothing */
	char cause[256];
	int error; /* errno of the cause; 0: it is none */
};

static const char *type_name(int type)
{
	return type == SOCK_STREAM ? "TCP" : "UDP";
}

/* ---- a socket -------------------------------------------------------------------------------- */

static void set_listener_option(int fd, int level, int option)
{
	int on = 1;

	if (setsockopt(fd, level, option, &on, sizeof(on)) != 0)
		log_warn("can't set the socket option %d of level %d: %m", option, level);
}

struct reception reception_of(const struct net *net, int tls, int protocol)
{
	static const int verify[] = {
		[CONF_LISTEN_TLS_BY_Z] = VERIFY_AS_SET,
		[CONF_LISTEN_TLS_OFF] = VERIFY_AS_SET,
		[CONF_LISTEN_TLS_NO_PEER] = SSL_VERIFY_NONE,
		[CONF_LISTEN_TLS_PEER] = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT | SSL_VERIFY_CLIENT_ONCE,
	};
	bool plain = !net->certificates || tls == CONF_LISTEN_TLS_OFF;

	return (struct reception){ .transport = plain ? &transport_plain : &transport_tls,
				   .verify = verify[tls],
				   .protocol = protocol };
}

bool bind_add_listener(struct net *net, int fd, const struct reception *reception, bool local)
{
	struct listener *listener = mem_zalloc(sizeof(*listener)), **end = &net->listeners;
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);

	if (!listener || getsockname(fd, (struct sockaddr *)&bound, &length) != 0) {
		mem_free(listener);
		close(fd);
		return false;
	}
	*listener = (struct listener){ .net = net, .fd = fd, .local = local, .reception = *reception };
	listener->family = bound.ss_family;
	listener->port = address_port((struct sockaddr *)&bound);
	address_text(listener->address, "tcp", (struct sockaddr *)&bound, length);
	while (*end)
		end = &(*end)->next;
	*end = listener;
	net->listener_count++;
	if (net->tcp_port == 0)
		net->tcp_port = listener->port;
	return true;
}

/* -o sock_cookie_id: packets of the sockets carry the mark, by which a packet filter knows them. */
static void set_mark(int fd, const struct conf *conf)
{
	uint32_t mark = (uint32_t)conf->sock_cookie_id;

	if (mark != 0 && setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) != 0)
		log_warn("can't set the mark of -o sock_cookie_id: %m");
}

/* 0, or -1 with errno. */
static int bind_tcp(struct net *net, const struct addrinfo *info, const struct reception *reception)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, info->ai_protocol);
	int error;

	if (fd < 0)
		return -1;
	set_mark(fd, net->server->conf);
	set_listener_option(fd, SOL_SOCKET, SO_REUSEADDR);
	set_listener_option(fd, SOL_SOCKET, SO_KEEPALIVE); /* accepted sockets inherit these */
	set_listener_option(fd, IPPROTO_TCP, TCP_NODELAY);
	if (info->ai_family == AF_INET6)
		set_listener_option(fd, IPPROTO_IPV6, IPV6_V6ONLY);
	if (bind(fd, info->ai_addr, info->ai_addrlen) == 0)
		return bind_add_listener(net, fd, reception, false) ? 0 : -1;
	error = errno;
	close(fd);
	errno = error;
	return -1;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Is the address bound already, as by "-l 127.0.0.1 -l localhost"? */
static bool have_it(const struct net *net, int type, const struct addrinfo *info)
{
	char address[NET_ADDRESS_BYTES];

	if (address_port(info->ai_addr) == 0)
		return false;
	address_text(address, type == SOCK_STREAM ? "tcp" : "udp", info->ai_addr, info->ai_addrlen);
	for (const struct listener *l = net->listeners; l; l = l->next)
		if (strcmp(l->address, address) == 0)
			return true;
	return udp_have(net, address);
}

static void tell_cause(struct binding *binding, const struct addrinfo *info, int error)
{
	char address[NET_ADDRESS_BYTES], holder[HOLDER_BYTES] = "another process";

	binding->error = error;
	if (error != EADDRINUSE) {
		snprintf(binding->cause, sizeof(binding->cause), "%s", strerror(error));
		return;
	}
	/* If nobody is found, holder stays as it is. */
	(void)!holder_find(binding->type, info->ai_addr, holder, sizeof(holder));
	address_text(address, "", info->ai_addr, info->ai_addrlen);
	snprintf(binding->cause, sizeof(binding->cause), "%.40s: %s %.70s is held by %s", strerror(error),
		 type_name(binding->type), address, holder);
}

/* Binds all addresses of a host; NULL: all interfaces. As in memcached, one address that can be bound is enough. The
   log has a line about the others. */
static int bind_host(struct binding *binding, const char *host, const char *port)
{
	struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = binding->type }, *list;
	unsigned bound = 0, failed = 0;
	int code = getaddrinfo(host, port, &hints, &list);

	if (code != 0) {
		snprintf(binding->cause, sizeof(binding->cause), "getaddrinfo(): %s", gai_strerror(code));
		return FS_EINVAL;
	}
	for (struct addrinfo *info = list; info; info = info->ai_next) {
		if (binding->only_checks || have_it(binding->net, binding->type, info) ||
		    (binding->type == SOCK_STREAM ? bind_tcp(binding->net, info, &binding->reception)
						  : udp_bind(binding->net, info)) == 0) {
			bound++;
			continue;
		}
		code = errno;
		if (code == EAFNOSUPPORT && bound + failed > 0)
			continue;
		failed++;
		tell_cause(binding, info, code);
		if (code != EADDRINUSE && code != EADDRNOTAVAIL && code != EAFNOSUPPORT) {
			bound = 0;
			break;
		}
	}
	freeaddrinfo(list);
	if (bound > 0 && failed > 0)
		log_warn("can't listen on all addresses of %s port %s: %s", host ? host : "*", port, binding->cause);
	return bound > 0 ? FS_OK : FS_ESYS;
}

/* getaddrinfo would take 70000 as 4464. */
static bool is_port(const char *text)
{
	size_t length = strspn(text, "0123456789");

	return length > 0 && length <= 5 && !text[length] && atoi(text) <= UINT16_MAX;
}

/*
 * Binds one of -l's addresses: HOST, HOST:PORT, [V6]:PORT, or a bare IPv6 address, behind the words of conf/listen.h.
 */
static int bind_address(struct binding *binding, char *address, const char *port)
{
	char *host = address, *colon, why[CONF_LISTEN_WHY_BYTES];
	struct conf_listen listen;
	int code;

	code = conf_listen_read(binding->net->server->conf, address, strlen(address), &listen, why);
	if (code != FS_OK) {
		snprintf(binding->cause, sizeof(binding->cause), "%s", why);
		return code;
	}
	host += listen.address - address;
	binding->reception = reception_of(binding->net, listen.tls, listen.protocol);
	if (*host == '[') {
		char *bracket = strchr(++host, ']');

		if (!bracket) {
			snprintf(binding->cause, sizeof(binding->cause), "Invalid IPV6 address: \"%s\"", host - 1);
			return FS_EINVAL;
		}
		*bracket = 0;
		if (bracket[1] == ':')
			port = bracket + 2;
	} else {
		colon = strchr(host, ':');
		if (colon && !strchr(colon + 1, ':')) {
			*colon = 0;
			port = colon + 1;
		}
	}
	if (!is_port(port)) {
		snprintf(binding->cause, sizeof(binding->cause), "Invalid port number: \"%s\"", port);
		return FS_EINVAL;
	}
	return bind_host(binding, *host && strcmp(host, "*") != 0 ? host : NULL, port);
}

/* ---- the options ----------------------------------------------------------------------------- */

/* Binds the addresses of -l for one of -p and -U. A port within -l is for both. */
static int bind_list(struct binding *binding, const char *addresses, const char *port)
{
	char *list = strdup(addresses), *rest = NULL;
	int code = list ? FS_OK : FS_ENOMEM;

	for (char *address = list ? strtok_r(list, ",; ", &rest) : NULL; address && code == FS_OK;
	     address = strtok_r(NULL, ",; ", &rest))
		code = bind_address(binding, address, port);
	free(list);
	return code;
}

static int bind_port(struct net *net, int type, int port, bool only_checks, char reason[256])
{
	const char *addresses = net->server->conf->listen;
	struct binding binding = { .net = net, .type = type, .only_checks = only_checks };
	char text[16], all[] = "*";
	bool listed = addresses && *addresses;
	int code;

	snprintf(text, sizeof(text), "%d", port < 0 ? 0 : port);
	code = listed ? bind_list(&binding, addresses, text) : bind_address(&binding, all, text);
	if (code != FS_OK && listed)
		snprintf(reason, 256, "failed to listen on one of interface(s) %.60s%s: %.150s", addresses,
			 strlen(addresses) > 60 ? "..." : "", binding.cause);
	else if (code != FS_OK)
		snprintf(reason, 256, "failed to listen on %s port %d: %.200s", type_name(type), port, binding.cause);
	errno = binding.error;
	return code;
}

/* The UNIX socket belongs to the user who serves, as in memcached. Only root can give it away, and only root must. */
static bool give_to_user(const struct conf *conf)
{
	const struct passwd *user = geteuid() == 0 && conf->user ? getpwnam(conf->user) : NULL;

	return !user || lchown(conf->unix_socket, user->pw_uid, user->pw_gid) == 0;
}

static int bind_unix(struct net *net, char reason[256])
{
	const struct conf *conf = net->server->conf;
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct reception reception = reception_of(net, CONF_LISTEN_TLS_OFF, conf->binding_protocol);
	struct stat file = { 0 };
	char holder[HOLDER_BYTES];
	mode_t mask;
	bool ok;
	int fd;

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", conf->unix_socket);
	if (holder_of_unix(&address, holder, sizeof(holder))) {
		errno = EADDRINUSE;
		snprintf(reason, 256, "failed to listen on UNIX socket: %s: %m: it is held by %s", conf->unix_socket,
			 holder);
		return FS_ESYS;
	}
	if (lstat(conf->unix_socket, &file) == 0 && S_ISSOCK(file.st_mode))
		unlink(conf->unix_socket);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	mask = umask((mode_t)~conf->unix_mask & 0777);
	ok = fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
	if (ok) {
		net->unix_path = realpath(conf->unix_socket, NULL); /* -d goes to another directory */
		ok = lstat(conf->unix_socket, &file) == 0 && give_to_user(conf);
		net->unix_device = file.st_dev;
		net->unix_inode = file.st_ino;
	}
	if (!ok)
		snprintf(reason, 256, "failed to listen on UNIX socket: %s: %m", conf->unix_socket);
	umask(mask);
	if (!ok && fd >= 0)
		close(fd);
	return ok && bind_add_listener(net, fd, &reception, true) ? FS_OK : FS_ESYS;
}

static int refuse_no_ports(const struct conf *conf, char reason[256])
{
	if (conf->port != 0 || conf->udp_port != 0)
		return FS_OK;
	snprintf(reason, 256, "nothing to listen on: both ports are 0 and there is no UNIX socket");
	return FS_ERANGE;
}

int bind_all(struct net *net, char reason[256])
{
	const struct conf *conf = net->server->conf;
	int code = FS_OK;

	if (inherited_any(net))
		return inherited_open(net, reason);
	if (conf->unix_socket)
		return bind_unix(net, reason);
	if (conf->port != 0)
		code = bind_port(net, SOCK_STREAM, conf->port, false, reason);
	if (code == FS_OK && conf->udp_port != 0)
		code = bind_port(net, SOCK_DGRAM, conf->udp_port, false, reason);
	return code == FS_OK ? refuse_no_ports(conf, reason) : code;
}

int bind_check(struct net *net, char reason[256])
{
	const struct conf *conf = net->server->conf;
	const char *slash = conf->unix_socket ? strrchr(conf->unix_socket, '/') : NULL;
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = ".";
	int code = FS_OK;

	if (conf->unix_socket) {
		if (slash)
			snprintf(folder, sizeof(folder), "%.*s", (int)(slash - conf->unix_socket) + 1,
				 conf->unix_socket);
		if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) == 0)
			return FS_OK;
		snprintf(reason, 256, "failed to listen on UNIX socket: %s: %m", conf->unix_socket);
		return FS_ESYS;
	}
	if (conf->port != 0)
		code = bind_port(net, SOCK_STREAM, conf->port, true, reason);
	if (code == FS_OK && conf->udp_port != 0)
		code = bind_port(net, SOCK_DGRAM, conf->udp_port, true, reason);
	return code == FS_OK ? refuse_no_ports(conf, reason) : code;
}

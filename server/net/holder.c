/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds the process that holds a port. The kernel's table of sockets tells everybody which user it is. Only root and
 * that user can see which process it is. Where the daemon may not see it, it asks the port itself for its version.
 */
#include "server/net/net_internal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"

#define LISTENING 0x0a /* a TCP socket's state in the kernel's tables */
#define UNCONNECTED 1 /* a UNIX socket's state there, whether it listens or not */
#define ANSWER_MS 1000 /* for each of two questions */

/* The facts about the process; an empty text stands for an unknown one. */
struct holder {
	uid_t uid;
	long pid; /* 0: not known */
	char name[17], user[33], unit[65], version[33];
};

/* ---- the kernel's tables ---------------------------------------------------------------------- */

/* One line of the kernel's tables: "  sl: ADDRESS:PORT PEER:PORT STATE ... UID TIMEOUT INODE". */
struct entry {
	uint32_t address[4];
	unsigned port, state, uid;
	uint64_t inode;
};

/* Addresses are written as 32-bit words of this machine's order. */
static bool parse_entry(const char *line, struct entry *out)
{
	char address[33];
	size_t words;

	*out = (struct entry){ 0 };
	if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f:] %x %*s %*s %*s %u %*u %" SCNu64, address, &out->port,
		   &out->state, &out->uid, &out->inode) != 5)
		return false;
	words = strlen(address) / 8;
	for (size_t i = 0; i < words; i++) {
		char word[9] = "";

		memcpy(word, address + 8 * i, 8);
		out->address[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	return true;
}

/* Does the entry's socket keep us from binding this address? The "any" address collides with each. */
static bool entry_collides(const struct entry *entry, const uint32_t address[4], unsigned port)
{
	static const uint32_t any[4];

	return entry->port == port &&
	       (memcmp(entry->address, address, sizeof(any)) == 0 || memcmp(entry->address, any, sizeof(any)) == 0 ||
		memcmp(address, any, sizeof(any)) == 0);
}

/* Finds a socket in a table that collides with the address. */
static bool find_entry(const char *table, bool listening, const uint32_t address[4], unsigned port, struct entry *out)
{
	FILE *file = fopen(table, "re");
	bool found = false;
	char line[512];

	while (file && !found && fgets(line, sizeof(line), file))
		found = parse_entry(line, out) && (!listening || out->state == LISTENING) &&
			entry_collides(out, address, port);
	if (file)
		fclose(file);
	return found;
}

static bool find_socket(bool tcp, const struct sockaddr *address, struct entry *out)
{
	bool six = address->sa_family == AF_INET6;
	unsigned port = address_port(address);
	uint32_t words[4] = { 0 };

	if (six)
		memcpy(words, &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr, 16);
	else
		memcpy(words, &((const struct sockaddr_in *)(const void *)address)->sin_addr, 4);
	if (find_entry(tcp ? (six ? "/proc/self/net/tcp6" : "/proc/self/net/tcp")
			   : (six ? "/proc/self/net/udp6" : "/proc/self/net/udp"),
		       tcp, words, port, out))
		return true;
	if (six)
		return false;
	memset(words, 0xff, sizeof(words)); /* for sockets of both families: of these only "any" collides */
	return find_entry(tcp ? "/proc/self/net/tcp6" : "/proc/self/net/udp6", tcp, words, port, out);
}

/* Finds the socket that a process has bound to this path: "ADDRESS: REFERENCES PROTOCOL FLAGS TYPE STATE
   INODE PATH". */
static bool find_unix(const char *wanted, uint64_t *inode)
{
	FILE *file = fopen("/proc/self/net/unix", "re");
	bool found = false;
	char line[512];

	while (file && !found && fgets(line, sizeof(line), file)) {
		unsigned type, state;
		int path = 0;

		line[strcspn(line, "\n")] = 0;
		found = sscanf(line, "%*x: %*x %*x %*x %x %x %" SCNu64 " %n", &type, &state, inode, &path) == 3 &&
			path > 0 && type == SOCK_STREAM && state == UNCONNECTED && strcmp(line + path, wanted) == 0;
	}
	if (file)
		fclose(file);
	return found;
}

/* ---- the process ------------------------------------------------------------------------------ */

static bool has_socket(const char *pid, uint64_t inode)
{
	char path[300], wanted[64], target[64];
	const struct dirent *entry;
	bool found = false;
	DIR *folder;

	snprintf(wanted, sizeof(wanted), "socket:[%" PRIu64 "]", inode);
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);

		if (length <= 0)
			continue;
		target[length] = 0;
		found = strcmp(target, wanted) == 0;
	}
	if (folder)
		closedir(folder);
	return found;
}

static void read_first_line(const char *path, char *out, size_t size)
{
	FILE *file = fopen(path, "re");

	*out = 0;
	if (file && fgets(out, (int)size, file))
		out[strcspn(out, "\n")] = 0;
	if (file)
		fclose(file);
}

/* Writes the service that the path of the process's control group ends in, if it ends in one. */
static void find_unit(const char *pid, char *out, size_t size)
{
	char path[64], line[512];
	const char *unit;

	snprintf(path, sizeof(path), "/proc/%.16s/cgroup", pid);
	read_first_line(path, line, sizeof(line));
	unit = strrchr(line, '/');
	if (unit && strlen(unit) > 8 && strcmp(unit + strlen(unit) - 8, ".service") == 0)
		snprintf(out, size, "%s", unit + 1);
}

static bool belongs_to(const char *pid, uid_t uid)
{
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.16s", pid);
	return stat(path, &st) == 0 && st.st_uid == uid;
}

/* A process that was started by root keeps root's sockets when it gives root up, so that its present user counts. The
   owner of its folder in /proc is root if its memory may not be dumped. */
static void read_present_user(struct holder *holder, const char *pid)
{
	char path[64], line[256];
	unsigned uid;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.16s/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Uid: %*u %u", &uid) == 1)
			holder->uid = (uid_t)uid;
	if (file)
		fclose(file);
}

static void name_process(struct holder *holder, const char *pid)
{
	char path[64];

	holder->pid = atol(pid);
	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	read_first_line(path, holder->name, sizeof(holder->name));
	find_unit(pid, holder->unit, sizeof(holder->unit));
	read_present_user(holder, pid);
}

/*
 * Finds the process by its socket, if we may look into it. Otherwise it is taken for the only process of its user, as a
 * service's mostly is. That guess isn't made for root, who has many, nor for our own user, whose processes we can look
 * into.
 */
static void find_process(struct holder *holder, uint64_t inode)
{
	DIR *folder = opendir("/proc");
	const struct dirent *entry;
	bool guess = holder->uid != 0 && holder->uid != geteuid();
	unsigned suspects = 0;
	char pid[17] = "";

	while (folder && (entry = readdir(folder))) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (has_socket(entry->d_name, inode)) {
			snprintf(pid, sizeof(pid), "%.16s", entry->d_name);
			suspects = 1;
			break;
		}
		if (guess && belongs_to(entry->d_name, holder->uid) && suspects++ == 0)
			snprintf(pid, sizeof(pid), "%.16s", entry->d_name);
	}
	if (folder)
		closedir(folder);
	if (suspects != 1)
		return;
	name_process(holder, pid);
}

/* ---- what the port answers -------------------------------------------------------------------- */

static bool wait_until_ready(int fd, short events, uint64_t until_ms)
{
	struct pollfd ready = { .fd = fd, .events = events };
	uint64_t now_ms = clk_now_ms(clk_boot());

	return now_ms < until_ms && poll(&ready, 1, (int)(until_ms - now_ms)) == 1;
}

/* Returns a socket that connects to the address, or -1. */
static int connect_to(const struct sockaddr *address)
{
	struct sockaddr_storage target = { 0 };
	bool six = address->sa_family == AF_INET6;
	socklen_t length = six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memcpy(&target, address, length); /* the kernel takes "any" as this machine */
	if (fd >= 0 && connect(fd, (struct sockaddr *)&target, length) != 0 && errno != EINPROGRESS) {
		close(fd);
		return -1;
	}
	return fd;
}

/* Reads the first line of the answer to a question. False: none came in ANSWER_MS. */
static bool ask_port(int fd, const char *question, char *line, size_t size)
{
	uint64_t until_ms = clk_now_ms(clk_boot()) + ANSWER_MS;
	size_t got = 0;

	if (!wait_until_ready(fd, POLLOUT, until_ms) || send(fd, question, strlen(question), MSG_NOSIGNAL) < 0)
		return false;
	while (got < size - 1 && wait_until_ready(fd, POLLIN, until_ms)) {
		ssize_t more = recv(fd, line + got, size - 1 - got, 0);

		if (more <= 0)
			return false;
		got += (size_t)more;
		line[got] = 0;
		if (strchr(line, '\n'))
			return true;
	}
	return false;
}

/* "VERSION 1.6.18" is the answer of memcached and of Flashield; only Flashield has "stats flash". Of the answer, only
   characters that a version may have are taken. */
static void ask_version(struct holder *holder, const struct sockaddr *address)
{
	char line[128], version[25];
	int fd = connect_to(address);

	if (fd < 0)
		return;
	if (ask_port(fd, "version\r\n", line, sizeof(line)) &&
	    sscanf(line, "VERSION %24[0-9A-Za-z._-]", version) == 1) {
		bool ours = ask_port(fd, "stats flash\r\n", line, sizeof(line)) && strncmp(line, "STAT ", 5) == 0;

		snprintf(holder->version, sizeof(holder->version), ours ? "flashield" : "memcached %s", version);
	}
	close(fd);
}

/* ---- together --------------------------------------------------------------------------------- */

static void find_holder_user(struct holder *holder)
{
	const struct passwd *user = getpwuid(holder->uid);

	if (user)
		snprintf(holder->user, sizeof(holder->user), "%s", user->pw_name);
	else
		snprintf(holder->user, sizeof(holder->user), "%u", (unsigned)holder->uid);
}

static void describe_holder(const struct holder *holder, char *out, size_t size)
{
	const char *comma = *holder->unit ? ", " : "";

	if (holder->pid > 0)
		snprintf(out, size, "process %ld (%s), user %s%s%s", holder->pid, holder->name, holder->user, comma,
			 holder->unit);
	else if (*holder->version)
		snprintf(out, size, "%s (user %s)", holder->version, holder->user);
	else
		snprintf(out, size, "a process of user %s", holder->user);
}

bool holder_find(int type, const struct sockaddr *address, char *out, size_t size)
{
	bool tcp = type == SOCK_STREAM;
	struct entry entry;
	struct holder holder = { 0 };

	if (!find_socket(tcp, address, &entry))
		return false;
	holder.uid = (uid_t)entry.uid;
	find_process(&holder, entry.inode);
	find_holder_user(&holder);
	if (tcp && holder.pid == 0)
		ask_version(&holder, address);
	describe_holder(&holder, out, size);
	return true;
}

bool holder_of_unix(const struct sockaddr_un *address, char *out, size_t size)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct holder holder = { 0 };
	struct ucred peer;
	socklen_t length = sizeof(peer);
	char pid[17];
	uint64_t inode;
	/* EAGAIN: somebody listens, and has not accepted as many as may wait. ECONNREFUSED: its holder may not listen yet. */
	bool connected = fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0,
	     listens = connected || (fd >= 0 && errno == EAGAIN),
	     bound = !listens && fd >= 0 && errno == ECONNREFUSED && find_unix(address->sun_path, &inode);

	if (bound)
		find_process(&holder, inode);
	if (connected && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0) {
		holder.uid = peer.uid;
		snprintf(pid, sizeof(pid), "%ld", (long)peer.pid);
		name_process(&holder, pid);
	}
	if (holder.pid > 0) {
		find_holder_user(&holder);
		describe_holder(&holder, out, size);
	} else {
		snprintf(out, size, "another process");
	}
	if (fd >= 0)
		close(fd);
	return listens || bound;
}

bool net_find_holder(const char *address, char *out, size_t size)
{
	struct addrinfo hints = { .ai_flags = AI_NUMERICSERV, .ai_socktype = SOCK_STREAM }, *list;
	const char *colon = strrchr(address, ':');
	size_t brackets = *address == '[';
	char host[256];
	bool found;

	if (!colon || (size_t)(colon - address) >= sizeof(host) || (size_t)(colon - address) < 2 * brackets)
		return false;
	snprintf(host, sizeof(host), "%.*s", (int)((size_t)(colon - address) - 2 * brackets), address + brackets);
	if (getaddrinfo(host, colon + 1, &hints, &list) != 0)
		return false;
	found = address_port(list->ai_addr) != 0 && holder_find(SOCK_STREAM, list->ai_addr, out, size);
	freeaddrinfo(list);
	return found;
}

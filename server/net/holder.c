/* SPDX-License-Identifier: BSD-3-Clause */
/* Who holds a port that is taken: the process, as far as /proc tells us. */
#include "server/net/net_internal.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTENING 0x0a /* a TCP socket's state in the kernel's tables */

/* One line of the kernel's tables: "  sl: ADDRESS:PORT PEER:PORT STATE ..." with the inode as the tenth word. */
struct entry {
	uint32_t address[4];
	unsigned port, state;
	uint64_t inode;
};

/* Addresses are written as 32-bit words of this machine's order. */
static bool parse_entry(const char *line, struct entry *out)
{
	char address[33];
	size_t words;

	*out = (struct entry){ 0 };
	if (sscanf(line, " %*u: %32[0-9A-Fa-f]:%x %*[0-9A-Fa-f:] %x %*s %*s %*s %*u %*u %" SCNu64, address, &out->port,
		   &out->state, &out->inode) != 4)
		return false;
	words = strlen(address) / 8;
	for (size_t i = 0; i < words; i++) {
		char word[9] = "";

		memcpy(word, address + 8 * i, 8);
		out->address[i] = (uint32_t)strtoul(word, NULL, 16);
	}
	return true;
}

/* Do they collide? Any address does with each. */
static bool collides(const struct entry *entry, const uint32_t address[4], unsigned port)
{
	static const uint32_t any[4];

	return entry->port == port && (memcmp(entry->address, address, sizeof(any)) == 0 ||
				       memcmp(entry->address, any, sizeof(any)) == 0 ||
				       memcmp(address, any, sizeof(any)) == 0);
}

/* The inode of a socket that has the port; 0: none is found. */
static uint64_t find_inode(const char *table, bool listening, const uint32_t address[4], unsigned port)
{
	FILE *file = fopen(table, "re");
	char line[512];
	uint64_t found = 0;
	struct entry entry;

	while (file && !found && fgets(line, sizeof(line), file))
		if (parse_entry(line, &entry) && (!listening || entry.state == LISTENING) &&
		    collides(&entry, address, port))
			found = entry.inode;
	if (file)
		fclose(file);
	return found;
}

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

static void name_process(const char *pid, char *out, size_t size)
{
	char path[300], name[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/comm", pid);
	file = fopen(path, "re");
	if (file && fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = 0;
	if (file)
		fclose(file);
	snprintf(out, size, "process %.16s (%s)", pid, name);
}

bool holder_find(int type, const struct sockaddr *address, char *out, size_t size)
{
	bool tcp = type == SOCK_STREAM, six = address->sa_family == AF_INET6;
	uint32_t words[4] = { 0 };
	const struct dirent *entry;
	uint64_t inode;
	unsigned port;
	DIR *folder;
	bool found = false;

	if (six) {
		memcpy(words, &((const struct sockaddr_in6 *)address)->sin6_addr, 16);
		port = ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	} else {
		memcpy(words, &((const struct sockaddr_in *)address)->sin_addr, 4);
		port = ntohs(((const struct sockaddr_in *)address)->sin_port);
	}
	inode = find_inode(tcp ? (six ? "/proc/net/tcp6" : "/proc/net/tcp") : (six ? "/proc/net/udp6" : "/proc/net/udp"),
			   tcp, words, port);
	if (!inode && !six) { /* a socket of both families is in the other table */
		memset(words, 0xff, sizeof(words)); /* no address: only "any" collides */
		inode = find_inode(tcp ? "/proc/net/tcp6" : "/proc/net/udp6", tcp, words, port);
	}
	folder = inode ? opendir("/proc") : NULL;
	while (folder && !found && (entry = readdir(folder))) {
		found = isdigit((unsigned char)entry->d_name[0]) && has_socket(entry->d_name, inode);
		if (found)
			name_process(entry->d_name, out, size);
	}
	if (folder)
		closedir(folder);
	return found;
}

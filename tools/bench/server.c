/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/bench/server_internal.h"

/* A flash file is preallocated by writing it, and a wrapper like valgrind makes all of it slower. */
#define START_SECONDS 300
#define START_POLL_MS 2
#define STOP_MS 10000
#define STOP_WRAPPED_MS 60000
#define LOG_TAIL_BYTES 2000

const char *const server_names[SERVER_KINDS] = { "flashield", "memcached", "extstore" };

/*
 * A free port, held by a socket that is bound and doesn't listen: with SO_REUSEADDR on both sides the
 * server may bind it too, while the kernel gives it to nobody who asks for any port.
 */
static int port_reserve(uint16_t *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &length) != 0) {
		close(fd);
		return -1;
	}
	*port = ntohs(address.sin_port);
	return fd;
}

/* The end of the server's log, for who has to find out why it failed. */
static void log_show(const struct server *server)
{
	char text[LOG_TAIL_BYTES + 1];
	ssize_t length = -1;
	off_t size;
	int fd = open(server->log_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	size = lseek(fd, 0, SEEK_END);
	if (size >= 0)
		length = pread(fd, text, LOG_TAIL_BYTES, size > LOG_TAIL_BYTES ? size - LOG_TAIL_BYTES : 0);
	close(fd);
	if (length > 0)
		fprintf(stderr, "flashield-bench: %s said:\n%.*s", server_names[server->spec.kind], (int)length, text);
}

static void files_remove(struct server *server)
{
	if (server->flash_path[0])
		unlink(server->flash_path);
	unlink(server->log_path);
	drive_destroy(server);
	watchdog_destroy(server);
}

static void describe_end(int status, char *out, size_t out_bytes)
{
	if (WIFSIGNALED(status))
		snprintf(out, out_bytes, "was killed by signal %d", WTERMSIG(status));
	else
		snprintf(out, out_bytes, "ended with status %d", WEXITSTATUS(status));
}

/* Polls until the server answers. A server that ends before that is reaped. */
static int answer_await(struct server *server)
{
	char end[64];
	int status, code;

	for (long waited_ms = 0; waited_ms < START_SECONDS * 1000L; waited_ms += START_POLL_MS) {
		code = ask_version(server);
		if (code != FS_EAGAIN)
			return code;
		if (child_wait(server->pid, START_POLL_MS, &status)) {
			server->pid = 0;
			describe_end(status, end, sizeof(end));
			fprintf(stderr, "flashield-bench: %s %s before it answered\n", server_names[server->spec.kind],
				end);
			return FS_ESYS;
		}
	}
	fprintf(stderr, "flashield-bench: %s doesn't answer\n", server_names[server->spec.kind]);
	return FS_ESYS;
}

/* A file of the server: nobody else's, as the port is ours while it is there. */
static int file_name(const struct server *server, const struct bench_options *options, const char *what, char out[512])
{
	int length = snprintf(out, 512, "%s/bench-%d-%s-%u.%s", options->directory, (int)getpid(),
			      server_names[server->spec.kind], server->port, what);

	return length < 0 || length >= 512 ? FS_EINVAL : 0;
}

static int files_name(struct server *server, const struct bench_options *options)
{
	int code = file_name(server, options, "log", server->log_path);

	if (code == 0 && server->spec.flash_bytes)
		code = file_name(server, options, "flash", server->flash_path);
	if (code == 0 && server->spec.slow_drive)
		code = file_name(server, options, "drive", server->drive_path);
	return code;
}

static void report_command(const struct server *server, const struct bench *bench, const struct command *command)
{
	const struct server_spec *spec = &server->spec;
	char name[96], text[COMMAND_BYTES];

	if (!bench->figures)
		return;
	snprintf(name, sizeof(name), "%s -t %u -m %llu%s", server_names[spec->kind], spec->threads ? spec->threads : 1,
		 (unsigned long long)spec->memory_mb, spec->flash_bytes ? " with flash" : "");
	command_describe(command, text, sizeof(text));
	figures_about(bench->figures, name, "%s", text);
}

int server_start(struct server *server, const struct bench *bench, const struct server_spec *spec)
{
	struct command command;
	int held, code, status;

	*server = (struct server){ .spec = *spec, .stats_fd = -1, .perf_fd = -1, .watchdog_fd = -1 };
	held = port_reserve(&server->port);
	if (held < 0)
		return FS_ESYS;
	code = files_name(server, bench->options);
	if (code == 0 && spec->slow_drive)
		code = drive_create(server);
	if (code == 0 && spec->watchdog_seconds)
		code = watchdog_create(server);
	if (code == 0)
		code = command_build(&command, server, bench->options);
	if (code == 0)
		code = child_start(server, &command, spec->unpinned ? -1 : bench->options->server_cpu);
	if (code != 0)
		goto out;
	code = answer_await(server);
	if (code == 0 && spec->slow_drive)
		code = drive_check(server);
	if (code != 0) {
		log_show(server);
		if (server->pid > 0) {
			kill(server->pid, SIGKILL);
			child_wait(server->pid, -1, &status);
			server->pid = 0;
		}
		goto out;
	}
	report_command(server, bench, &command);
out:
	close(held);
	if (code != 0) {
		ask_close(server);
		if (server->perf_fd >= 0)
			close(server->perf_fd);
		files_remove(server);
	}
	return code;
}

int server_stop(struct server *server)
{
	int code = 0, status = 0;
	char end[64];

	ask_close(server);
	drive_release(server);
	if (server->pid > 0) {
		kill(server->pid, SIGTERM);
		if (!child_wait(server->pid, server->spec.wrapper ? STOP_WRAPPED_MS : STOP_MS, &status)) {
			kill(server->pid, SIGKILL);
			child_wait(server->pid, -1, &status);
		}
		server->pid = 0;
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
			describe_end(status, end, sizeof(end));
			fprintf(stderr, "flashield-bench: %s %s\n", server_names[server->spec.kind], end);
			log_show(server);
			code = FS_ESYS;
		}
	}
	if (server->perf_fd >= 0)
		close(server->perf_fd);
	server->perf_fd = -1;
	files_remove(server);
	return code;
}

bool server_alive(struct server *server)
{
	siginfo_t info = { .si_pid = 0 };

	/* WNOWAIT: who has ended stays to be reaped by server_stop, which judges its status. */
	return server->pid > 0 && waitid(P_PID, (id_t)server->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == 0;
}

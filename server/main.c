/* SPDX-License-Identifier: BSD-3-Clause */
/* The daemon: the order in which its parts start, and stop in reverse. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "conf/app_limits.h"
#include "conf/conf.h"
#include "conf/units.h"
#include "server/admin/admin.h"
#include "server/admin/reload.h"
#include "server/auth/auth.h"
#include "server/build_info.h"
#include "server/check_config.h"
#include "server/conn/server.h"
#include "server/count/contents.h"
#include "server/drive.h"
#include "server/failed_start.h"
#include "server/metrics/metrics.h"
#include "server/net/net.h"
#include "server/opening.h"
#include "server/predecessor.h"
#include "server/process.h"
#include "server/proto/proto.h"
#include "server/seccomp.h"
#include "server/service.h"
#include "server/stop.h"
#include "server/store/daemon_lock.h"
#include "server/store/store.h"

#define FOLDER_BYTES 8200 /* of the daemon's folder and of a path in it */

/* With -d the daemon leaves its folder before it saves its state. */
static const char *from_root(const char *path, char out[FOLDER_BYTES])
{
	char *absolute = path ? conf_absolute(path) : NULL;

	if (absolute)
		snprintf(out, FOLDER_BYTES, "%s", absolute);
	free(absolute);
	return path ? out : NULL;
}

static void store_config_from(const struct conf *conf, struct store_config *out)
{
	static char state_dir[FOLDER_BYTES], region_dir[FOLDER_BYTES];
	static struct app_limits limits;
	char why[APP_LIMITS_WHY_BYTES];

	store_config_init(out);
	out->memory_bytes = conf->memory_limit_bytes;
	out->max_item_bytes = (uint32_t)conf->max_item_size_bytes;
	out->evict = !conf->disable_evictions;
	out->cas = !conf->disable_cas; /* with -C the protocols hide the ids as well */
	out->workers = (unsigned)conf->threads;
	out->flash_path = conf->flash_path;
	out->flash_bytes = conf->flash_size_bytes;
	out->flash_min_free = conf->flash_min_free_bytes;
	out->takes_extstore = conf->flash_by_ext_path;
	out->segment_bytes = conf->segment_size_bytes;
	out->flash_object_bytes = (uint32_t)conf->flash_object_size_bytes;
	out->filter_bits = conf->filter_bits;
	out->filter = conf->filter == CONF_FILTER_CUCKOO ? FIDX_FILTER_CUCKOO : FIDX_FILTER_BLOOM;
	out->filter_units = conf->filter_units > 1 ? (unsigned)conf->filter_units : 0;
	out->tag_bits = conf->tag_bits == CONF_AUTO ? 0 : (unsigned)conf->tag_bits;
	out->functions = (unsigned)conf->hash_functions;
	out->placement = conf->placement == CONF_PLACEMENT_PAPER ? SEG_PLACE_PAPER : SEG_PLACE_SWEEP;
	out->direct = conf->direct_io == CONF_DIRECT_IO_OFF ? SEG_DIRECT_OFF : SEG_DIRECT_AUTO;
	out->read_unit = conf->flash_read_unit == CONF_READ_PAGE ? SEG_READ_PAGE : SEG_READ_BLOCK;
	out->clock_mode = conf->clock_mode == CONF_CLOCK_MFU ? FIDX_CLOCK_MFU : FIDX_CLOCK_LRU;
	out->reinsertion = conf->reinsertion == CONF_REINSERTION_LIVE ? STORE_REINSERT_LIVE : STORE_REINSERT_READ;
	out->hot_fraction = conf->hot_fraction;
	out->index = conf->index == CONF_INDEX_FRUGAL ? STORE_INDEX_FRUGAL : STORE_INDEX_SLOTS;
	out->frugal_memory = (unsigned)conf->frugal_memory;
	out->promotion = (struct store_promotion){ .rule = (enum store_promote)conf->promote,
						   .share = conf->promote_share,
						   .miss_cost = conf->promote_miss_cost,
						   .width = (unsigned)conf->promote_width,
						   .threshold = conf->promote_threshold };
	out->flash_write_limit = units_rate_bytes(conf->flash_write_limit);
	out->flash_write_dwpd = units_rate_dwpd(conf->flash_write_limit);
	out->flash_write_ratio = conf->flash_write_ratio;
	out->size_exponent = conf->size_exponent;
	out->read_timeout_ms = (uint32_t)(conf->flash_read_timeout_us / 1000);
	out->label_mode = conf->label_mode == CONF_LABEL_PAPER ? CLF_LABEL_PAPER : CLF_LABEL_FULL;
	out->admission = (enum clf_admission)conf->admission;
	out->flashiness_threshold = (uint32_t)conf->flashiness_threshold;
	out->flashiness_horizon_ms = conf->flashiness_horizon_us / 1000;
	out->training_window_ms = conf->training_window_us / 1000;
	out->app_delimiter = conf->app_delimiter;
	if (app_limits_parse(conf->app_limit, conf->app_delimiter, &limits, why) == FS_OK) /* conf has judged it */
		out->limits = &limits;
	out->state_dir = from_root(conf->state_dir, state_dir);
	out->region_dir = from_root(conf->region_dir, region_dir);
	out->restart_max_downtime_us = conf->restart_max_downtime_us;
	out->journal = conf->journal == CONF_JOURNAL_SYNC;
	if (conf->sample_contents == CONF_SAMPLE_CONTENTS_ON)
		out->samples = (struct store_sample_sink){ .seen = contents_note };
}

_Static_assert((int)CONF_PROMOTE_SKETCH == STORE_PROMOTE_SKETCH && (int)CONF_PROMOTE_LRU == STORE_PROMOTE_LRU &&
		       (int)CONF_PROMOTE_SECOND == STORE_PROMOTE_SECOND,
	       "the option's words stand in the order of the rules");

_Static_assert((int)CONF_ADMISSION_SVM == CLF_ADMIT_SVM && (int)CONF_ADMISSION_READ_ONCE == CLF_ADMIT_READ_ONCE &&
		       (int)CONF_ADMISSION_READ_OR_SECOND_HIT == CLF_ADMIT_READ_OR_SECOND_HIT &&
		       (int)CONF_ADMISSION_ALL == CLF_ADMIT_ALL && (int)CONF_ADMISSION_FREQ == CLF_ADMIT_FREQ &&
		       (int)CONF_ADMISSION_SECOND_HIT == CLF_ADMIT_SECOND_HIT && CLF_ADMIT_SECOND_HIT == CLF_ADMIT_LAST,
	       "the option's words stand in the order of the classifier's rules");

/* As the user who will write the saved model, so that root follows none of this user's links. The paths are from the
   root, as with -d the daemon leaves its folder. */
static int open_models(struct server *server, char reason[256])
{
	const struct conf *conf = server->conf;
	char *folder = conf->state_dir ? conf_absolute(conf->state_dir) : NULL, *saved = NULL, why[256] = "";
	struct store_models models = { .pinned = conf->model_pinned };
	int code;

	if (folder && asprintf(&saved, "%s/model.json", folder) < 0)
		saved = NULL;
	must(!folder || saved);
	server->model = conf->model ? conf_absolute(conf->model) : NULL;
	models.given = server->model;
	models.saved = saved;
	code = store_open_models(server->store, &models, why);
	free(folder);
	free(saved);
	if (code != FS_OK)
		snprintf(reason, 256, "--model: %.240s", *why ? why : fs_strerror(code));
	return code;
}

static int report_failed_start(const char *reason, int exit_code)
{
	return failed_start(reason, exit_code, 0);
}

/* The context of the network's hooks. */
struct parts {
	struct process *process;
	struct server *server;
	const char *name; /* the daemon's */
};

static void on_ready(void *context)
{
	const struct parts *parts = context;

	process_detach_done(parts->process);
	if (process_log_moved(parts->process)) /* whoever has typed the options has seen them already */
		conf_log_notes(parts->server->conf);
	if (stop_was_early())
		net_stop(parts->server->net);
	else
		store_serves(parts->server->store);
	log_event(LOG_LEVEL_INFO, "started", LOG_FIELDS(LOG_NUMBER("THREADS", parts->server->conf->threads)),
		  "clients are served");
	metrics_set_serving(parts->server->metrics, METRICS_SERVES);
	service_ready(parts->server->service, parts->server);
}

/* SIGHUP */
static void on_reload(void *context)
{
	const struct parts *parts = context;

	reload_all(parts->server->reload);
}

static void on_hangup(void *context)
{
	const struct parts *parts = context;

	service_reloading(parts->server->service);
	on_reload(context);
	service_ready(parts->server->service, parts->server);
}

static void on_draining(void *context)
{
	const struct parts *parts = context;

	stop_begins(parts->server->conf);
	metrics_set_serving(parts->server->metrics, METRICS_STOPS);
	log_event(LOG_LEVEL_INFO, "stopping", NULL, "no more clients are served");
	service_stopping(parts->server->service);
}

static void on_stopping(void *context)
{
	admin_stop(((const struct parts *)context)->server);
}

static void on_hurry(void *context)
{
	(void)context;
	stop_cut();
}

static void on_second(void *context)
{
	const struct server *server = ((const struct parts *)context)->server;
	uint32_t patience_seconds = service_patience_seconds(server->service);

	admin_second();
	service_second(server->service, server,
		       patience_seconds == 0 || (net_alive(server->net, patience_seconds) &&
						 store_alive_within(server->store, patience_seconds)));
}

/* A metrics endpoint that fails to start is only a warning. */
static void start_metrics(struct server *server)
{
	static char trouble[400];
	const char *address = server->conf->metrics_listen;
	char reason[256] = "", holder[NET_HOLDER_BYTES];
	int code = metrics_start(&server->metrics, server, address, reason);

	if (code == FS_OK) {
		server->metrics_address = metrics_address(server->metrics);
		if (server->metrics)
			log_line(strcmp(address, server->metrics_address) == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_NOTICE,
				 "http%s://%s/metrics is for Prometheus",
				 metrics_has_certificates(server->metrics) ? "s" : "", server->metrics_address);
		return;
	}
	if (code == FS_ESYS && net_find_holder(address, holder, sizeof(holder)))
		snprintf(trouble, sizeof(trouble), "%s: it is held by %s", reason, holder);
	else
		snprintf(trouble, sizeof(trouble), "%s", reason);
	log_warn("no /metrics: %s%s", code == FS_ESYS ? "--metrics-listen: " : "", trouble);
	server->metrics_trouble = trouble;
}

/* Called when all threads except the workers run, and nothing is left to do that only a start does. */
static int confine_process(const struct conf *conf, char reason[256])
{
	if (conf->seccomp == CONF_SECCOMP_OFF)
		return 0;
	if (!seccomp_is_possible()) {
		log_warn("--seccomp is without effect in this build, which has a sanitizer");
		return 0;
	}
	return seccomp_install(reason);
}

static struct net_hooks hooks_for(struct parts *parts)
{
	return (struct net_hooks){ .context = parts,
				   .ready = on_ready,
				   .reload = on_hangup,
				   .draining = on_draining,
				   .hurry = on_hurry,
				   .stopping = on_stopping,
				   .second = on_second,
				   .beats = service_patience_seconds(parts->server->service) > 0 };
}

/* Serves clients from an open store, as the user. Returns the exit code. */
static int serve_from_store(struct parts *parts, int argc, char **argv)
{
	struct server *server = parts->server;
	const struct conf *conf = server->conf;
	const struct net_hooks hooks = hooks_for(parts);
	int exit_code, code;
	char reason[256] = "";
	bool saved = false;

	if (process_become_user(parts->process, reason) != 0)
		return report_failed_start(reason, EX_OSERR);
	store_claim(server->store, parts->name);
	code = open_models(server, reason);
	if (code != FS_OK) {
		exit_code = report_failed_start(reason, code == FS_EINVAL ? EX_USAGE : EX_OSERR);
		goto out_save;
	}
	process_write_pid(parts->process);
	if (auth_open(&server->auth, conf, reason) != FS_OK) {
		exit_code = report_failed_start(reason, EXIT_FAILURE);
		goto out_pid;
	}
	server->reload = reload_create(server, argc, argv);
	server->reload_status = reload_status(server->reload);
	if (store_start(server->store) != FS_OK) {
		exit_code = report_failed_start("can't start the cleaner", EX_OSERR);
		goto out_reload;
	}
	if (drive_start(server->store) != FS_OK || admin_start(server, reason) != FS_OK) {
		exit_code = report_failed_start(reason, EX_OSERR);
		goto out_started;
	}
	start_metrics(server);
	if (confine_process(conf, reason) != 0) {
		exit_code = report_failed_start(reason, EX_OSERR);
		admin_stop(server);
	} else {
		exit_code = net_serve(server->net, &hooks, reason) == FS_OK ? EXIT_SUCCESS
									    : report_failed_start(reason, EX_OSERR);
	}
	server->metrics_address = NULL;
	metrics_stop(server->metrics);
out_started:
	drive_stop();
	service_stage(server->service, "Stopping: writes to flash are being finished");
	store_stop(server->store);
	admin_destroy(server); /* the cleaner and the trainer may emit events until here */
	saved = exit_code == EXIT_SUCCESS;
	if (saved)
		stop_save(server->store, server->service);
out_reload:
	reload_destroy(server->reload);
	auth_close(server->auth);
out_pid:
	process_remove_pid(parts->process);
out_save:
	/* A start that has failed has taken over what the last run saved: it is there for the next one. */
	if (!saved) {
		(void)!stop_was_early();
		stop_begins(conf);
		stop_save(server->store, server->service);
	}
	return exit_code;
}

/* Serves from the store once the run before this one has ended. Returns the exit code. */
static int serve_in_turn(struct parts *parts, struct store_config *config, int argc, char **argv)
{
	struct server *server = parts->server;
	struct predecessor predecessor = { .conf = server->conf, .service = server->service };
	char reason[256] = "", *endpoints = net_endpoints(server->net);
	const struct daemon_lock_config turn = { .folder = config->state_dir ? config->state_dir : config->region_dir,
						 .endpoints = endpoints,
						 .owner = config->flash_owner,
						 .wait = predecessor_wait,
						 .context = &predecessor };
	struct daemon_lock *lock = NULL;
	int exit_code, code;

	opening_begin(server->conf, server->service);
	code = daemon_lock_take(&lock, &turn, reason);
	mem_free(endpoints);
	if (code == FS_OK) {
		config->daemon = parts->name = daemon_lock_name(lock);
		config->kin = daemon_lock_kin(lock, &config->kin_count);
		code = store_open(&server->store, config, reason);
	}
	opening_end();
	if (code == FS_OK) {
		exit_code = serve_from_store(parts, argc, argv);
		store_close(server->store);
	} else {
		exit_code = failed_start(reason, code == FS_EINVAL || code == FS_ERANGE ? EX_USAGE : EX_OSERR, code);
	}
	daemon_lock_release(lock);
	return exit_code;
}

/* Sockets and flash file are opened first, as that may need root. All the rest runs as the user. */
static int serve_clients(const struct conf *conf, struct service *service, struct process *process, int argc,
			 char **argv)
{
	struct server server = { .conf = conf, .service = service, .started_seconds = clk_wall_seconds() };
	struct net_setup setup = { .server = &server, .choose_protocol = proto_choose };
	const struct seg_owner owner = { process->uid, process->gid };
	struct parts parts = { process, &server, NULL };
	struct store_config config;
	char reason[256] = "";
	int exit_code, code;

	if (drive_listen() != FS_OK)
		return report_failed_start("the socket that FLASHIELD_DRIVE names can't be made", EX_OSERR);
	setup.inherited_count = service_sockets(service, &setup.inherited);
	code = net_listen(&server.net, &setup, reason);
	if (code != FS_OK)
		return failed_start(reason, code == FS_ERANGE ? EX_USAGE : EX_OSERR, code);
	store_config_from(conf, &config);
	if (process->switch_user)
		config.flash_owner = &owner;
	config.settle = opening_settle;
	stop_take_signals();
	exit_code = serve_in_turn(&parts, &config, argc, argv);
	net_close(server.net);
	free(server.model);
	return exit_code;
}

/* If descriptor 0, 1 or 2 is closed at the start, the next file opened would get its number. That could be a socket or
   the flash file, and the log would be written into it. */
static bool fill_standard_files(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	return fd >= 0 && close(fd) == 0;
}

/* Reads the options. Lines about errors are meant for the person who typed them, or, in the journal, are errors like
   any other. The service manager is told the first one. */
static int load_options(struct conf *conf, int argc, char **argv)
{
	char *text = NULL, *rest = NULL;
	size_t length = 0;
	FILE *err = open_memstream(&text, &length);
	int code = conf_load(conf, argc, argv, stdout, err ? err : stderr);

	if (!err || fclose(err) != 0)
		return code;
	if (code != FS_OK && conf->exit_code != 0)
		failed_start_notify(text, FS_EINVAL);
	if (!log_to_journal())
		fputs(text, stderr);
	else
		for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			log_line(conf->exit_code != 0 ? LOG_LEVEL_ERROR : LOG_LEVEL_NOTICE, "%s", line);
	free(text);
	return code;
}

int main(int argc, char **argv)
{
	struct conf conf = { 0 };
	struct service *service = NULL;
	struct process process;
	char reason[256] = "";
	int exit_code;

	if (!fill_standard_files())
		return EX_OSERR;
	conf_set_build(build_info);
	if (load_options(&conf, argc, argv) != FS_OK) {
		exit_code = conf.exit_code;
		goto out;
	}
	if (conf.faults) {
		struct store_config store;

		store_config_from(&conf, &store);
		exit_code = check_config(&conf, &store);
		goto out;
	}
	log_set_times(true);
	process_use_large_pages(&conf, argv);
	if (service_open(&service, reason) != FS_OK) {
		exit_code = report_failed_start(reason, EX_USAGE);
		goto out;
	}
	conf_log_notes(&conf);
#ifdef FS_FAULTS
	if (fault_init_from_environment() != FS_OK) {
		exit_code = EX_USAGE;
		goto out;
	}
#endif
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a flash file over the limit is an error to report */
	exit_code = process_prepare(&process, &conf);
	if (exit_code == 0)
		exit_code = serve_clients(&conf, service, &process, argc, argv);
out:
	service_close(service);
	conf_free(&conf);
	return exit_code;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --check-config, after the options have been read: looks at all that they name, as a start would, and changes nothing.
 *
 * Looked at: the user of -u, certificates and key, addresses and names of -l, the flash path and what lies there, sizes that must
 * fit into -m, the model, and the users' files. Not looked at: whether a port is free, because the daemon that is to
 * reload holds it, and whether there is room for a new flash file. Root without -u looks as root.
 *
 * Threads: the main thread, before there are others. It becomes the user of -u, so that the process is good for nothing else.
 */
#ifndef FS_SERVER_CHECK_CONFIG_H
#define FS_SERVER_CHECK_CONFIG_H

struct conf;
struct store_config;

/* Tells each fault in a line on standard error, or in the journal where that is standard error. Returns the process's
   exit code: 0 if options and files are good, else the one with which a start would end at the first fault. */
int check_config(const struct conf *conf, const struct store_config *store);

#endif

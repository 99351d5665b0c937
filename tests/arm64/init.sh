#!/bin/busybox sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=dash
# The first process of the emulated machine (machine.py): mounts, runs /work.sh, and switches the machine off.
/bin/busybox --install -s /bin
export PATH=/bin LD_LIBRARY_PATH=/lib HOME=/
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /run
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
while read -r module; do
	insmod "/modules/$module" || echo "FAIL arm64 machine: module $module"
done </modules/order
mount -t ext4 /dev/vda /srv || echo "FAIL arm64 machine: the disk can't be mounted"
mkdir -m 1777 /srv/tmp
mount --bind /srv/tmp /tmp
ip link set lo up
sh /work.sh
echo "over"
poweroff -f

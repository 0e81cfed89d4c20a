#!/bin/bash
# images.sh mini OUT CACHE        OUT/{vmlinux,base.cpio,kernel-version}: the stock Debian kernel and a busybox initramfs
# images.sh full OUT CACHE MINI   OUT/{root.ext4,xen.elf}: a Debian root with systemd, tuned and tools, and Xen; MINI is
#                                 the finished folder of the mini tier, whose kernel the modules must match
# Downloads and unpacked packages are kept in CACHE and used again.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
HERE=$(cd "$(dirname "$0")" && pwd)
WHAT=$1 OUT=$2 CACHE=$3
SUITE=bookworm
mkdir -p "$CACHE/deb"

# need COMMAND PACKAGE: install what is missing, or say what is missing.
need() {
  command -v "$1" >/dev/null && return
  apt-get install -y --no-install-recommends "$2" >"$CACHE/apt.log" 2>&1 || true
  command -v "$1" >/dev/null ||
    { echo "the lab needs $1 (Debian package $2); installing it failed, see $CACHE/apt.log (run as root after apt-get update)" >&2; exit 1; }
}
# fetch PACKAGE: its file in $CACHE/deb, downloaded once.
fetch() {
  ls "$CACHE"/deb/"$1"_*.deb >/dev/null 2>&1 || (cd "$CACHE/deb" && apt-get download -q "$1" >"$CACHE/apt.log" 2>&1) ||
    { echo "cannot download the Debian package $1, see $CACHE/apt.log (is apt-get update done?)" >&2; exit 1; }
  ls "$CACHE"/deb/"$1"_*.deb | tail -n 1
}

# What every guest needs. The initramfs is unpacked at each boot, so it is kept small.
BASE="virtio_pci virtio_blk virtio_net crc32c_generic ext4 overlay msr cpuid acpi-cpufreq cpufreq_ondemand cpufreq_conservative
  cpufreq_powersave cpufreq_userspace bfq kyber-iosched null_blk intel_rapl_msr intel-uncore-frequency coretemp"
FULL="autofs4 virtio_scsi virtio_console nvme sd_mod scsi_debug brd raid0 raid1 raid10 raid456 dm_mod dm_mirror dm_snapshot
  mq-deadline e1000e igb vmxnet3 veth dummy bonding ipmi_si ipmi_devintf acpi_ipmi acpi_power_meter pcc-cpufreq tcp_bbr sch_fq zram xfs
  loop squashfs bridge 8021q nf_conntrack nf_tables fuse i6300esb xen-acpi-processor xen-evtchn xen-gntdev xen-gntalloc xen-privcmd xenfs"
PACKAGES=systemd,systemd-sysv,dbus,udev,tuned,kmod,ethtool,mdadm,lvm2,ipmitool,pciutils,util-linux,util-linux-extra,procps
PACKAGES=$PACKAGES,iproute2,python3-minimal,irqbalance,numactl,nvme-cli,linux-cpupower,hdparm,fdisk,xfsprogs,auditd
PACKAGES=$PACKAGES,xen-utils-4.17,xen-utils-common,xenstore-utils

# copy_modules ROOT MODULE...: the modules and all they depend on.
copy_modules() {
  local root=$1
  shift
  for m in "$@"; do
    modprobe -d "$KERNEL" -S "$KV" --show-depends "$m" 2>/dev/null | awk '$1=="insmod"{print $2}'
  done | sort -u | while read -r file; do
    mkdir -p "$(dirname "$root/lib/modules/$KV/${file#*"$KV"/}")"
    cp "$file" "$root/lib/modules/$KV/${file#*"$KV"/}"
  done
  mkdir -p "$root/lib/modules/$KV"
  cp "$KERNEL/lib/modules/$KV"/modules.{builtin,order,builtin.modinfo} "$root/lib/modules/$KV/"
  depmod -b "$root" "$KV"
}

mini() {
  need qemu-system-x86_64 qemu-system-x86
  need iasl acpica-tools
  need cpio cpio
  need depmod kmod
  need xz xz-utils
  local package deb
  package=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/{print $2; exit}')
  [ -n "$package" ] || { echo "apt knows no linux-image-amd64: run apt-get update first" >&2; exit 1; }
  deb=$(fetch "$package")
  KERNEL=$CACHE/kernel-$(basename "$deb" .deb)
  if [ ! -e "$KERNEL" ]; then
    rm -rf "$KERNEL.new"
    dpkg-deb -x "$deb" "$KERNEL.new"
    KV=$(ls "$KERNEL.new/lib/modules")
    depmod -b "$KERNEL.new" "$KV"
    mv "$KERNEL.new" "$KERNEL"
  fi
  KV=$(ls "$KERNEL/lib/modules")
  echo "$KV" > "$OUT/kernel-version"
  echo "$KERNEL" > "$OUT/kernel-folder"
  # The bzImage holds an xz stream. Unpacked here, QEMU boots the ELF by its PVH note and every boot is about 2 s
  # shorter. What follows the stream is not xz, so xz complains at its end: the ELF header is what we check.
  local at
  at=$(LC_ALL=C grep -obUaP '\xfd7zXZ\x00' "$KERNEL/boot/vmlinuz-$KV" | head -n 1 | cut -d: -f1)
  tail -c "+$((at + 1))" "$KERNEL/boot/vmlinuz-$KV" | xz -dc --single-stream > "$OUT/vmlinux" 2>/dev/null || true
  [ "$(head -c 4 "$OUT/vmlinux" | tail -c 3)" = ELF ] || { echo "no vmlinux inside vmlinuz-$KV" >&2; exit 1; }

  local busybox root
  busybox=$CACHE/busybox
  [ -e "$busybox" ] || { rm -rf "$busybox.new"; dpkg-deb -x "$(fetch busybox-static)" "$busybox.new"; mv "$busybox.new" "$busybox"; }
  root=$(mktemp -d)
  mkdir -p "$root"/{bin,sbin,usr/bin,usr/sbin,proc,sys,dev,tmp,run,root,etc,lab}
  cp "$busybox/bin/busybox" "$root/bin/"
  for applet in $("$busybox/bin/busybox" --list | grep -vx busybox); do ln -sf busybox "$root/bin/$applet"; done
  # Where the kernel looks when it wants a module itself, such as that of a governor.
  ln -sf ../bin/busybox "$root/sbin/modprobe"
  # shellcheck disable=SC2086 # a list of words
  copy_modules "$root" $BASE
  cp "$HERE/../guest/init" "$root/init"
  cp "$HERE/../guest/agent" "$HERE/../guest/rdmsr" "$HERE/../guest/wrmsr" "$root/lab/"
  chmod +x "$root/init" "$root"/lab/*
  (cd "$root" && find . | cpio -o -H newc --quiet) > "$OUT/base.cpio"
  rm -rf "$root"
}

# Units that only cost boot time in a guest without network, log or disks of its own.
MASKED="apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer logrotate.timer
  e2scrub_reap.service systemd-pstore.service nvmf-autoconnect.service nvmefc-boot-connections.service getty@tty1.service
  serial-getty@ttyS0.service systemd-pcrphase.service systemd-timesyncd.service sysstat.service systemd-binfmt.service
  systemd-update-utmp.service systemd-journal-flush.service systemd-tmpfiles-clean.timer blk-availability.service
  lvm2-monitor.service lvm2-lvmpolld.socket dm-event.socket uuidd.socket modprobe@.service systemd-fsck@.service
  systemd-random-seed.service ldconfig.service xen.service xendomains.service xfs_scrub_all.timer"

full() {
  local mini=$1
  KV=$(cat "$mini/kernel-version")
  KERNEL=$(cat "$mini/kernel-folder")
  need mmdebstrap mmdebstrap
  need mkfs.ext4 e2fsprogs
  local xen root tar units
  xen=$CACHE/xen
  [ -e "$xen" ] || { rm -rf "$xen.new"; dpkg-deb -x "$(fetch xen-hypervisor-4.17-amd64)" "$xen.new"; mv "$xen.new" "$xen"; }
  gunzip -c "$xen"/boot/xen-*-amd64.gz > "$OUT/xen.elf"

  tar=$CACHE/rootfs-$(echo "$SUITE $PACKAGES" | cksum | cut -d' ' -f1).tar
  if [ ! -e "$tar" ]; then
    mmdebstrap --variant=minbase --include="$PACKAGES" --dpkgopt='path-exclude=/usr/share/doc/*' \
      --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
      --aptopt='APT::Install-Recommends "false"' "$SUITE" "$tar.new.tar" > "$CACHE/mmdebstrap.log" 2>&1 ||
      { tail -n 20 "$CACHE/mmdebstrap.log" >&2; exit 1; }
    mv "$tar.new.tar" "$tar"
  fi
  root=$(mktemp -d)
  tar -C "$root" -xf "$tar"
  # shellcheck disable=SC2086 # lists of words
  copy_modules "$root" $BASE $FULL
  echo lab > "$root/etc/hostname"
  echo "127.0.0.1 localhost lab" > "$root/etc/hosts"
  : > "$root/etc/fstab"
  echo 0123456789abcdef0123456789abcdef > "$root/etc/machine-id"
  units=$root/etc/systemd/system
  mkdir -p "$units/multi-user.target.wants"
  cp "$HERE/../guest/lab-job.service" "$units/"
  ln -sf ../lab-job.service "$units/multi-user.target.wants/"
  for unit in $MASKED; do ln -sf /dev/null "$units/$unit"; done
  # Started by the machines that want them, so that the others stay quick.
  rm -f "$units"/multi-user.target.wants/{tuned,irqbalance,auditd,mdmonitor}.service
  cp "$HERE/../guest/xen-dom0" "$root/usr/local/bin/"
  chmod +x "$root/usr/local/bin/xen-dom0"
  truncate -s 800M "$OUT/root.ext4"
  mkfs.ext4 -q -O ^has_journal,^metadata_csum,^64bit -m0 -d "$root" "$OUT/root.ext4"
  rm -rf "$root"
}

case $WHAT in
  mini) mini;;
  full) full "$4";;
  *) echo "unknown tier $WHAT" >&2; exit 2;;
esac

#!/bin/bash
# qemu.sh OUT CACHE: OUT/qemu-lab, a QEMU from Debian's own source package that knows the lab's table of MSRs
# (patch-qemu.py). About 4 CPU minutes, a 24 MB source download, a 16 MB result.
set -euo pipefail
export PATH=$PATH:/usr/sbin:/sbin
HERE=$(cd "$(dirname "$0")" && pwd)
OUT=$1 CACHE=$2
PACKAGES='ninja-build pkg-config libglib2.0-dev libpixman-1-dev zlib1g-dev libcap-ng-dev libattr1-dev libslirp-dev libfdt-dev
  flex bison meson gcc g++ xz-utils patch qemu-system-x86 seabios ipxe-qemu'
# apt also fails for somebody else's half-configured package: what counts is that ours are there.
dpkg -s $PACKAGES >/dev/null 2>&1 ||
  apt-get install -y --no-install-recommends $PACKAGES >"$CACHE/apt.log" 2>&1 ||
  dpkg -s $PACKAGES >/dev/null 2>&1 ||
  { echo "cannot install: $PACKAGES (see $CACHE/apt.log; run as root after apt-get update)" >&2; exit 1; }

mkdir -p "$CACHE/qemu-source"
cd "$CACHE/qemu-source"
# A deb-src line of the mirror that this machine already uses, kept apart from the machine's own lists.
if ! ls qemu_*.dsc >/dev/null 2>&1; then
  MIRROR=$(awk '/^URIs:/{print $2; exit} /^deb /{print $2; exit}' /etc/apt/sources.list.d/debian.sources /etc/apt/sources.list 2>/dev/null || true)
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${MIRROR:-http://deb.debian.org/debian} bookworm main" > src.list
  mkdir -p lists/partial
  APT="-o Dir::Etc::SourceList=$PWD/src.list -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists=$PWD/lists"
  apt-get $APT update -q >/dev/null
  apt-get $APT source -q --download-only qemu >/dev/null 2>&1
fi
rm -rf qemu-*/
tar xf qemu_*.orig.tar.xz
cd qemu-*/
tar xf ../qemu_*.debian.tar.xz
# Debian's patches matter: they bring 7.2.0 to the latest 7.2.x, and in 7.2.0 itself the CPU hotplug registers, so the
# ACPI processor objects that cpufreq and cpuidle hang on, are broken.
for p in $(sed 's/ *#.*//' debian/patches/series); do patch -s -p1 < "debian/patches/$p"; done
python3 "$HERE/patch-qemu.py" .
mkdir -p build
cd build
../configure --without-default-features --target-list=x86_64-softmmu --enable-tcg --enable-system --enable-slirp --enable-virtfs \
  --enable-attr --enable-cap-ng --enable-fdt=system --disable-werror --disable-docs --disable-debug-info --disable-install-blobs \
  --meson=/usr/bin/meson > configure.log 2>&1 || { tail -20 configure.log >&2; exit 1; }
nice -n 10 ninja -j"${JOBS:-$(nproc)}" qemu-system-x86_64 > ninja.log 2>&1 || { tail -30 ninja.log >&2; exit 1; }
strip -o "$OUT/qemu-lab" qemu-system-x86_64
cd "$CACHE"
rm -rf qemu-source/qemu-*/

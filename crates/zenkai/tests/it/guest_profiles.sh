# Applies each of $PROFILES in a guest, verifies it, takes it off, and compares every setting that a profile could reach.
# busybox does the reading: starting a program of Debian's costs a guest ten times as much.
machine_path=$PATH
mkdir -p /var/lib /tmp/busybox
/run/lab/busybox --install -s /tmp/busybox
PATH=/tmp/busybox:$PATH
ours() { PATH=$machine_path zenkai "$@"; }

# Left out is what changes by itself (random numbers, the last process id, limits that follow the memory), and what is an
# act rather than a value.
files() {
    find /proc/sys /proc/irq /sys/block/*/ /sys/class/net/*/ /sys/class/scsi_host/*/ /sys/devices/system/cpu \
         /sys/devices/system/node /sys/devices/virtual/workqueue /sys/firmware/acpi /sys/kernel/mm /sys/module \
         -type f -perm -0600 2>/dev/null | sort -u |
        grep -v -e /random/ -e ns_last_pid -e scaling_setspeed -e /damon -e drop_caches -e compact_memory -e uevent \
             -e lru_gen -e 'bdi/m..._bytes' -e binfmt_misc -e '/stats/reset'
}
# The settings that no file shows.
others() {
    od -An -td4 /dev/cpu_dma_latency | sed 's/^ */cpu_dma_latency:/'
    for file in /etc/tuned/* /etc/modprobe.d/*; do [ -f "$file" ] && grep -H '' "$file"; done
    grep '' /proc/mounts | sed 's/^/mounts:/'
    [ -e /proc/xen/capabilities ] &&
        PATH=$machine_path xenpm get-cpufreq-para | sed -n '/cpu id/h;/governor\|scaling freq/{G;s/\n/ /;s/cur .*]//;s/^/xenpm:/p}'
    true
}
cards() {
    command -v ethtool > /dev/null && for card in /sys/class/net/*/device; do
        card=${card%/device} card=${card##*/}
        for what in -g -k -c -a; do ethtool $what "$card" 2>/dev/null | sed "s/^/ethtool $what $card:/"; done
    done
    true
}
snapshot() {
    xargs grep -Hs '' < "$1" 2>/dev/null
    others
}

files > /tmp/files
# What belongs to one interrupt, one network interface or one module is looked at before all profiles and after.
grep -v -e /proc/irq/ -e '/net/ipv./conf/' -e '/net/ipv./neigh/' -e /sys/module/ -e /sys/class/net/ /tmp/files > /tmp/often
cards > /tmp/cards-first
snapshot /tmp/files > /tmp/all-first
snapshot /tmp/often > /tmp/first
for profile in $PROFILES; do
    ours profile apply "zenkai/$profile" > /tmp/out 2>&1; applied=$?
    snapshot /tmp/often > /tmp/during
    ours profile verify --json > /tmp/verify 2>&1; verified=$?
    ours profile off >> /tmp/out 2>&1; off=$?
    snapshot /tmp/often > /tmp/last
    echo "RESULT $profile apply=$applied verify=$verified off=$off"
    diff /tmp/first /tmp/during | sed -n "s/^[>+]\([^+]\)/CHANGED $profile \1/p"
    [ "$applied$off" = 00 ] || cat /tmp/out
    [ "$verified" = 0 ] || sed "s/^/VERIFY $profile /" /tmp/verify
    diff /tmp/first /tmp/last | sed "s/^/RESIDUE $profile /"
done
files > /tmp/files-last
diff /tmp/files /tmp/files-last | sed 's/^/RESIDUE files /'
snapshot /tmp/files > /tmp/all-last
diff /tmp/all-first /tmp/all-last | sed 's/^/RESIDUE all /'
cards > /tmp/cards-last
diff /tmp/cards-first /tmp/cards-last | sed 's/^/RESIDUE cards /'
wc -l < /tmp/all-first | sed 's/^/LINES /'

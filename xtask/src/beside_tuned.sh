set -e
mount -t tmpfs -o mode=0755 tmpfs "$SCRATCH"
for place in lib etc var; do mkdir -p "$SCRATCH/$place" "$SCRATCH/$place.work"; done
mount -t overlay -o "lowerdir=$TUNED/usr/lib:/usr/lib,upperdir=$SCRATCH/lib,workdir=$SCRATCH/lib.work" overlay /usr/lib
mount -t overlay -o "lowerdir=$TUNED/etc:/etc,upperdir=$SCRATCH/etc,workdir=$SCRATCH/etc.work" overlay /etc
mount -t overlay -o "lowerdir=/var,upperdir=$SCRATCH/var,workdir=$SCRATCH/var.work" overlay /var
mount -t tmpfs -o mode=0755 tmpfs /run
if [ -d /boot ]; then mount -t tmpfs -o mode=0755 tmpfs /boot; fi
mkdir -p /run/tuned /var/log/tuned
sed -i 's/^dynamic_tuning.*/dynamic_tuning = 0/' /etc/tuned/tuned-main.conf
exec "$@"

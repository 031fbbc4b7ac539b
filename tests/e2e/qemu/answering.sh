# The only process of a small Linux with a disk of its own, /dev/vda, and what cloud-init would read, /dev/vdb.
# Sectors of its disk: 0 says that the disk is sound, as the image does; 1 is the instance-id that user data was run for; 2 counts boots.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
for name in $(cat /modules/order); do insmod /modules/$name.ko; done
ifconfig eth0 10.0.2.15 up
sector() { dd if=/dev/vda bs=512 skip=$1 count=1 2>/dev/null | tr -d ' \n\0'; }
keep() { printf '%-511s\n' "$2" | dd of=/dev/vda bs=512 seek=$1 count=1 conv=notrunc,fsync 2>/dev/null; }

echo
[ "$(sector 0)" = sound ] || { echo the disk is spoilt; poweroff -f; }
boots=$(sector 2)
boots=$((${boots:-0} + 1))
keep 2 $boots
echo "boot number $boots of this disk"

# As cloud-init: once for each instance-id.
mkdir /seed && mount -t iso9660 -o ro /dev/vdb /seed
id=$(sed 's/.*"instance-id": *"\([^"]*\)".*/\1/' /seed/meta-data)
if [ "$id" = "$(sector 1)" ]; then
  echo "known instance $id"
else
  keep 1 "$id"
  echo "new instance $id"
  sh /seed/user-data
fi

mkdir /www && echo well > /www/index.html && httpd -p 8080 -h /www
echo linux is up
while sleep 0.5; do
  echo 1 > /proc/sys/vm/drop_caches
  [ "$(sector 0)" = sound ] || { rm -f /www/index.html; echo the disk is spoilt; }
done

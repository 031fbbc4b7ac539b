#!/usr/bin/env bash
# Fetches Debian's cloud kernel and a static busybox for the tests with a real Linux, and prints the folder that holds
# both as `vmlinuz` and `busybox`, and the drivers that tests need in `modules`. They are unpacked into a cache, not installed.
set -euo pipefail
out=${XDG_CACHE_HOME:-$HOME/.cache}/herder/linux
say() { echo "tools/qemu: $*" >&2; }

mkdir -p "$out"
exec 9>"$out/.lock"
flock 9
modules="virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_console failover net_failover virtio_net"
modules="$modules virtio_blk cdrom isofs"
whole() {
  [ -e "$out/vmlinuz" ] && [ -e "$out/busybox" ] || return 1
  for name in $modules; do [ -e "$out/modules/$name.ko" ] || return 1; done
}
if whole; then echo "$out"; exit 0; fi
command -v apt-get >/dev/null || { say "the Linux for tests comes from Debian's packages, and there is no apt-get"; exit 3; }

kernel() { apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/ *Depends: \(linux-image-[0-9].*\)/\1/p' | head -n1; }
if [ -z "$(kernel)" ] && [ "$(id -u)" = 0 ]; then apt-get update -qq; fi
image=$(kernel)
[ -n "$image" ] || { say "apt knows no linux-image-cloud-amd64; this needs Debian, and an apt-get update"; exit 3; }

work=$(mktemp -d "$out/.new.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
(cd "$work" && apt-get download -qq -o APT::Sandbox::User=root "$image" busybox-static >/dev/null)
for package in "$work"/*.deb; do dpkg-deb --fsys-tarfile "$package" | tar -x -C "$work" --exclude './usr/share/*'; done
mkdir "$work/modules"
wanted="$modules"
while [ -n "$wanted" ]; do # what each needs comes along: that differs from kernel to kernel
  for name in $wanted; do
    [ -e "$work/modules/$name.ko" ] && continue
    found=$(find "$work" -path "*/kernel/*/$name.ko*" | head -n1)
    [ -n "$found" ] || { say "$image has no driver $name"; exit 3; }
    cp "$found" "$work/modules/"
  done
  find "$work/modules" -name '*.xz' -exec xz -d {} +
  needed=$(cat "$work"/modules/*.ko | tr '\0' '\n' | sed -n 's/^depends=//p' | tr ',' '\n' | sort -u)
  wanted=$(for name in $needed; do [ -e "$work/modules/$name.ko" ] || echo "$name"; done)
done
mv "$work/bin/busybox" "$out/busybox"
mv "$work"/boot/vmlinuz-* "$out/vmlinuz"
rm -rf "$out/modules"
mv "$work/modules" "$out/modules"
echo "$out"

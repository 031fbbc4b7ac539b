#!/usr/bin/env bash
# Makes sure that a QEMU is here that can be trusted with migrations, and says nothing when it is.
# QEMU before 8.2 loses dirty pages when a guest without KVM migrates. Where the distribution's own is older, it is taken from
# the backports of the same mirror; that source is known to apt only while this runs.
set -euo pipefail
good=8.2
program=qemu-system-x86_64
packages=(qemu-system-x86 qemu-utils)
export DEBIAN_FRONTEND=noninteractive

version() { "$program" --version | sed -n '1s/.* version \([0-9.]*\).*/\1/p'; }
at_least() { [ "$(printf '%s\n' "$good" "$1" | sort -V | head -n1)" = "$good" ]; }
say() { echo "tools/qemu: $*" >&2; }

if command -v "$program" qemu-img >/dev/null && at_least "$(version)"; then exit 0; fi
command -v apt-get >/dev/null || { say "install QEMU $good or newer; without apt-get that is yours to do"; exit 3; }
[ "$(id -u)" = 0 ] || { say "install QEMU $good or newer, or run this as root: $0"; exit 3; }

sources=$(mktemp -d)
trap 'rm -rf "$sources"' EXIT

candidate() { apt-cache policy qemu-system-x86 | sed -n 's/ *Candidate: *\([0-9]*:\)\{0,1\}//p'; }

# The mirror and the release that the distribution itself is configured with.
backports() {
  local key=/usr/share/keyrings/debian-archive-keyring.gpg signed=
  [ ! -e "$key" ] || signed="[signed-by=$key] "
  apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    awk -v signed="$signed" '$3 == "main" && $2 !~ /-/ { print "deb " signed $1 " " $2 "-backports main"; exit }'
}

install_from_backports() {
  local suite
  mkdir "$sources/parts"
  cp /etc/apt/sources.list.d/*.{list,sources} "$sources/parts" 2>/dev/null || true
  backports >"$sources/parts/herder-backports.list"
  suite=$(awk '{ print $(NF - 1) }' "$sources/parts/herder-backports.list")
  local with=(-o "Dir::Etc::sourceparts=$sources/parts" -o APT::Get::List-Cleanup=0)
  apt-get update -qq "${with[@]}" -o APT::Update::Error-Mode=any >/dev/null 2>&1 &&
    apt-get install -y -qq --no-install-recommends "${with[@]}" -t "$suite" "${packages[@]}" >/dev/null
}

apt-get update -qq
if at_least "$(candidate)" || ! install_from_backports; then
  apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi
at_least "$(version)" || say "no backports at this mirror: QEMU $(version) is installed, which cannot be trusted with migrations"

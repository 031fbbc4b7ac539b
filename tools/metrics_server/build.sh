#!/usr/bin/env bash
# Makes sure that the real metrics-server exists, and prints the folder that holds it. What KUBEBUILDER_ASSETS holds is linked from there; else it is
# built once with Go into a cache outside the tree, keyed by go.sum and this script, as the programs of tools/kube are.
# A module of its own: its libraries are of other versions than those of the pinned Kubernetes, whose go.mod would have to follow them.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
program=metrics-server

release=$(sed -n 's/^\tsigs.k8s.io\/metrics-server \(v[0-9.]*\).*/\1/p' "$here/go.mod")
key=$(cat "$here/go.mod" "$here/go.sum" "$here/build.sh" | sha256sum | cut -c1-12)
out=${HERDER_KUBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/herder/kube}/metrics-server-$release-$key
mkdir -p "$out"

exec 9>"$out/.lock"
flock 9 # two test runs at once build once
if [ ! -x "$out/$program" ] && [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$program" ]; then
  ln -sf "$KUBEBUILDER_ASSETS/$program" "$out/$program"
fi
if [ ! -x "$out/$program" ]; then
  command -v go >/dev/null || { echo "tools/metrics_server: $program is not in KUBEBUILDER_ASSETS and there is no Go to build it with" >&2; exit 3; }
  echo "tools/metrics_server: building $program $release (once; some minutes)" >&2
  version="-X k8s.io/client-go/pkg/version.gitVersion=$release"
  (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $version" -o "$out/.$program.new" "sigs.k8s.io/metrics-server/cmd/$program")
  mv "$out/.$program.new" "$out/$program" # whole or not at all
fi
echo "$out"

#!/usr/bin/env bash
# Makes sure that the real Kubernetes programs exist, and prints the folder that holds them, one per line of need:
#   tools/kube/build.sh            all of them
#   tools/kube/build.sh kubectl    only those named
# What KUBEBUILDER_ASSETS holds is linked from there; the rest is built once with Go into a cache outside the tree.
# The folder is keyed by go.sum and this script, so another pin is another folder and nothing stale is ever used.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
all=(etcd kube-apiserver kube-scheduler kube-controller-manager kubectl)
wanted=("$@")
[ ${#wanted[@]} -gt 0 ] || wanted=("${all[@]}")

release=$(sed -n 's/^\tk8s.io\/kubernetes \(v[0-9.]*\).*/\1/p' "$here/go.mod")
key=$(cat "$here/go.mod" "$here/go.sum" "$here/build.sh" | sha256sum | cut -c1-12)
out=${HERDER_KUBE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/herder/kube}/$release-$key
mkdir -p "$out"

package_of() {
  case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
  esac
}

# kubectl cannot parse what the server calls itself unless the version is set when linking.
minor=${release#v*.}
minor=${minor%%.*}
version_flags() {
  local package
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s.gitVersion=%s -X %s.gitMajor=1 -X %s.gitMinor=%s ' "$package" "$release" "$package" "$package" "$minor"
  done
}

exec 9>"$out/.lock"
flock 9 # two test runs at once build once
for program in "${wanted[@]}"; do
  [ -x "$out/$program" ] && continue
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$program" ]; then
    ln -sf "$KUBEBUILDER_ASSETS/$program" "$out/$program"
    continue
  fi
  command -v go >/dev/null || { echo "tools/kube: $program is not in KUBEBUILDER_ASSETS and there is no Go to build it with" >&2; exit 3; }
  echo "tools/kube: building $program $release (once; some minutes)" >&2
  (cd "$here" && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w $(version_flags)" -o "$out/.$program.new" "$(package_of "$program")")
  mv "$out/.$program.new" "$out/$program" # whole or not at all
done
echo "$out"

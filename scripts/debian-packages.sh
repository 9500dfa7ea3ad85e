#!/usr/bin/env bash
# Install the Debian packages that only tests need: a browser, compilers, databases, other checkers.
#
#   scripts/debian-packages.sh [PART]...     the named parts, or all parts
#
# The script does not change installed parts. If a part cannot be installed (no root, no apt-get, no network), the script
# still succeeds. One line at the end says which tests are left out. These tests skip themselves.
set -euo pipefail

has() { local name; for name; do command -v "$name" || return 1; done; }

# For each part: how to detect it, its packages, and the tests that need it.
probe() {
  case $1 in
    browser) has chromium ;;
    clang) has clang-19 || has clang-16 || has clang-15 || has clang-14 || has clang ;;
    builds) has cmake make && compgen -G '/usr/lib/llvm-*/lib/libomp.so' ;;
    postgresql) has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' ;;
    etcd) has etcd etcdctl ;;
    nats) has nats-server || test -x /usr/sbin/nats-server ;;
    galera) has mariadbd && test -e /usr/lib/galera/libgalera_smm.so ;;
    spin) has spin gcc ;;
    java) has java ;;
    systemd) has systemd-analyze ;;
  esac >/dev/null
}
declare -A packages=(
  [browser]="chromium"
  [clang]="clang-14 clang-19 libstdc++-12-dev"
  [builds]="cmake make libomp-19-dev"
  [postgresql]="postgresql"
  [etcd]="etcd-server etcd-client"
  [nats]="nats-server"
  [galera]="mariadb-server galera-4"
  [spin]="spin gcc libc6-dev"
  [java]="default-jre-headless"
  [systemd]="systemd"
)
declare -A tests=(
  [browser]="the HTML report in a browser"
  [clang]="plait epa"
  [builds]="plait-cc with CMake and OpenMP"
  [postgresql]="plait gyro with PostgreSQL"
  [etcd]="plait gyro with etcd"
  [nats]="plait gyro with NATS JetStream"
  [galera]="Galera as a peer"
  [spin]="Spin as a peer"
  [java]="TLC as a peer"
  [systemd]="the unit of plait gyro"
)

# Keep only packages that this release of Debian has: the version numbers of clang differ.
available() { apt-cache pkgnames | grep -Fx -f <(printf '%s\n' "$@") || true; }

# Server packages start their servers on installation. Prevent that: the tests start their own instances.
policy=/usr/sbin/policy-rc.d
install() {
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(available "$@") >/dev/null
}

absent() {
  local part
  for part; do probe "$part" || echo "$part"; done
}

[ $# -gt 0 ] || set -- browser clang builds postgresql etcd nats galera spin java systemd
for part; do
  [ -n "${packages[$part]:-}" ] || { echo "error: unknown part: $part" >&2; echo "hint: choose from ${!packages[*]}" >&2; exit 2; }
done

missing=$(absent "$@")
why="the installation needs root and apt-get"
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  why="apt-get could not install them"
  apt-get update -qq || why="apt-get could not reach the package index"
  # Install all parts at once, which is fast. If that fails, install them one by one.
  install $(for part in $missing; do echo "${packages[$part]}"; done) || for part in $missing; do
    probe "$part" || install ${packages[$part]} || true
  done
  missing=$(absent $missing)
fi

if [ -z "$missing" ]; then
  echo "packages: nothing to install ($*)"
else
  line=""
  for part in $missing; do line+="; ${tests[$part]} (${packages[$part]})"; done
  echo "packages: tests left out, because $why: ${line#; }"
fi

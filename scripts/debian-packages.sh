#!/usr/bin/env bash
# Install the Debian packages that only tests need: a browser, compilers, databases, other checkers.
#
#   scripts/debian-packages.sh [PART]...     these parts, or all
#
# A part that is there stays as it is. A part that cannot be installed (no root, no apt-get, no network) does not fail the
# script: one line at the end says which tests are left out. These tests skip themselves.
set -euo pipefail

has() { local name; for name; do command -v "$name" || return 1; done; }

# The probe, what to install, and which tests need it.
probe() {
  case $1 in
    browser) has chromium chromedriver ;;
    clang) has clang-19 || has clang-16 || has clang-15 || has clang-14 || has clang ;;
    postgresql) has initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' ;;
    etcd) has etcd ;;
    galera) has mariadbd && test -e /usr/lib/galera/libgalera_smm.so ;;
    spin) has spin gcc ;;
    java) has java ;;
  esac >/dev/null
}
declare -A packages=(
  [browser]="chromium chromium-driver"
  [clang]="clang-14 clang-19 libstdc++-12-dev"
  [postgresql]="postgresql"
  [etcd]="etcd-server"
  [galera]="mariadb-server galera-4"
  [spin]="spin gcc libc6-dev"
  [java]="default-jre-headless"
)
declare -A tests=(
  [browser]="the HTML report in a browser"
  [clang]="plait epa"
  [postgresql]="plait gyro with PostgreSQL"
  [etcd]="plait gyro with etcd"
  [galera]="Galera as a peer"
  [spin]="Spin as a peer"
  [java]="TLC as a peer"
)

# Only packages that this release has: the numbers in the names of clang differ.
available() { apt-cache pkgnames | grep -Fx -f <(printf '%s\n' "$@") || true; }

# Packages of servers start these servers. The tests start instances of their own, so the packages must not.
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

[ $# -gt 0 ] || set -- browser clang postgresql etcd galera spin java
for part; do
  [ -n "${packages[$part]:-}" ] || { echo "error: no part is called $part; there are: ${!packages[*]}" >&2; exit 2; }
done

missing=$(absent "$@")
why="installing them takes root and apt-get"
if [ -n "$missing" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  why="apt-get could not install them"
  apt-get update -qq || why="apt-get could not reach the package index"
  # All at once is fast; if one cannot be installed, the others can.
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

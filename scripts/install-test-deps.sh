#!/usr/bin/env bash
# Installs the missing ones of the programs that the tests run. Quick when none is missing.
#   scripts/install-test-deps.sh [--list]     --list: only print the missing packages
set -euo pipefail

missing=()
need() { # PACKAGE THING…: PACKAGE is missing unless every THING, a command or a header, is there
  local package=$1 thing
  shift
  for thing in "$@"; do
    if ! command -v "$thing" >/dev/null && ! [[ $thing == *.h && -r $thing ]]; then
      missing+=("$package")
      return
    fi
  done
}
find_missing() {
  missing=()
  need bash bash
  need gcc gcc
  need g++ g++
  need libc6-dev /usr/include/stdlib.h
  need binutils nm objdump readelf
  need make make
  need git git
  need pkg-config pkg-config
  need sqlite3 sqlite3
  need nodejs node
  need redis-server redis-server
  need redis-tools redis-cli redis-benchmark
  need memcached memcached
  need nginx-light /usr/sbin/nginx
  need gunicorn gunicorn
  need apache2-utils ab
  need wrk wrk
  need curl curl
  need valgrind valgrind
  need openjdk-17-jdk-headless java javac
  need perl perl
  need qemu-system-x86 qemu-system-x86_64
  need cpio cpio
  # Linux is built in nightly tests alone.
  if [ "${CRATON_FULL-}" = 1 ]; then
    need flex flex
    need bison bison
    need bc bc
    need patch patch
    need xz-utils xz
    need libelf-dev /usr/include/gelf.h
  fi
  # The recipe of PostgreSQL is left out where it is missing.
  if [ "${CRATON_FULL-}" = 1 ]; then
    need postgresql "$(find /usr/lib/postgresql/*/bin/postgres 2>/dev/null | head -n 1)"
  fi
  # The nightly tests open the page of `craton serve` in a browser.
  if [ "${CRATON_FULL-}" = 1 ]; then
    need chromium chromium
    need npm npm
  fi
  # The tests run the system's python3 with its test suite, not one of a version manager.
  need python3 /usr/bin/python3
  if ! /usr/bin/python3 -c 'import test.test_dict' 2>/dev/null; then
    missing+=("$(testsuite_package)")
  fi
}
# Debian names the suite's package after the version; python3 may have to come first to know it.
testsuite_package() {
  local version
  version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) ||
    version=$(apt-cache depends python3 2>/dev/null | sed -nE 's/.*Depends: python(3\.[0-9]+)$/\1/p' | head -n 1)
  echo "libpython${version:-3}-testsuite"
}
find_missing
if [ "${1-}" = --list ]; then
  [ ${#missing[@]} = 0 ] || printf '%s\n' "${missing[@]}"
  exit 0
fi
if [ ${#missing[@]} = 0 ]; then
  echo "everything the tests need is here"
  exit 0
fi

as_root=(env)
[ "$(id -u)" = 0 ] || as_root=(sudo -n env)
if ! command -v apt-get >/dev/null || { ! "${as_root[@]}" true 2>/dev/null; }; then
  echo "the tests need what is missing here: ${missing[*]}" >&2
  echo "install it (the names are Debian's) and start again; doing so from here takes apt-get, and root or sudo without a password" >&2
  exit 1
fi

# A package must not start a server that a test starts. The policy file is Debian's way to say so;
# it exists only while packages are installed, and an existing policy stays.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
fi
apt() { "${as_root[@]}" DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 "$@"; }
echo "installing: ${missing[*]}"
apt update
find_missing
log=$(mktemp)
if ! apt install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  rm -f "$log"
  echo "apt-get could not install ${missing[*]}; its last lines are above" >&2
  exit 1
fi
rm -f "$log"
find_missing
if [ ${#missing[@]} != 0 ]; then
  echo "still missing after apt-get: ${missing[*]}; install them by hand and start again" >&2
  exit 1
fi

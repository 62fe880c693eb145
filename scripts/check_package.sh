#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries the packages of `make package` in a bare Debian 12, where no compiler is: check_package.sh FOLDER [CHROOT].
# CHROOT (default build/debian12) is made by debootstrap where it is missing; that needs root. Skipped (status 77) without.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
packages=$(cd "$1" && pwd)
root=${2:-$here/build/debian12}

skip() { echo "check_package.sh: skipped: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "making a Debian 12 to try the packages in needs root"
command -v debootstrap > /dev/null || skip "debootstrap is not installed"
if [ ! -f "$root/.complete" ]; then
  rm -rf "$root"
  debootstrap --variant=minbase bookworm "$root" > "$packages/debootstrap.log" 2>&1 || { tail -5 "$packages/debootstrap.log"; exit 1; }
  touch "$root/.complete"
fi

# A copy on top of it, for each package afresh.
work=$(mktemp -d)
cleanup() { umount "$work/root/proc" "$work/root" "$work/upper" 2> /dev/null || true; rm -rf "$work"; }
trap cleanup EXIT
bare() { chroot "$work/root" /usr/bin/env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin DEBIAN_FRONTEND=noninteractive "$@"; }
begin() {
  mkdir -p "$work/root" "$work/upper" "$work/work"
  mount -t tmpfs tmpfs "$work/upper"
  mkdir -p "$work/upper/upper" "$work/upper/work"
  mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/upper/upper,workdir=$work/upper/work" "$work/root"
  mount -t proc proc "$work/root/proc"
  mkdir "$work/root/try"
  cp "$here"/examples/digits/digits_b1.onnx "$here"/examples/library_calls/{network.py,toy.c} "$work/root/try/"
  for tool in cc gcc clang ld; do
    if bare sh -c "command -v $tool" > /dev/null; then echo "check_package.sh: the bare system has $tool"; exit 1; fi
  done
}
finish() { umount "$work/root/proc" "$work/root" "$work/upper"; }

# Networks run and compile; what needs a compiler says so. The third argument is libtenon.so, which needs what is there.
try() {
  local tenon=$1 said
  said=$(bare ldd "$3") || { echo "$2: $3: $said"; exit 1; }
  if grep 'not found' <<< "$said"; then echo "$2: $3 lacks libraries"; exit 1; fi
  bare "$tenon" run /try/digits_b1.onnx | grep -q '^run ' || { echo "$2: run fails"; exit 1; }
  bare "$tenon" compile /try/digits_b1.onnx -o /try/digits.so > /dev/null
  bare "$tenon" run /try/digits.so | grep -q '^run ' || { echo "$2: the compiled library does not run"; exit 1; }
  bare "$tenon" show /try/digits.so | grep -q '^inputs' || { echo "$2: the compiled library does not tell its interface"; exit 1; }
  bare "$tenon" compile /try/digits_b1.onnx --target c -o /try/c > /dev/null
  bare "$tenon" opt /try/network.py --passes LegalizeOps,FuseOps > /dev/null
  for arguments in "run /try/digits_b1.onnx --target c" "run /try/network.py --call-by-name toy --link /try/toy.c"; do
    # shellcheck disable=SC2086
    said=$(bare "$tenon" $arguments 2>&1 > /dev/null) && { echo "$2: $arguments: no error without a compiler"; exit 1; }
    grep -q 'needs the C compiler' <<< "$said" || { echo "$2: $arguments says: $said"; exit 1; }
  done
  echo "$2: ok"
}

for archive in "$packages"/tenon-*.tar.gz; do
  begin
  tar -C "$work/root/opt" -xzf "$archive"
  folder=/opt/$(basename "$archive" .tar.gz)
  try "$folder/bin/tenon" "$(basename "$archive")" "$folder/lib/libtenon.so"
  finish
done
for deb in "$packages"/tenon_*.deb; do
  begin
  cp "$deb" "$work/root/try/tenon.deb"
  cp /etc/resolv.conf "$work/root/etc/resolv.conf"
  for proxy in /etc/apt/apt.conf.d/*proxy*; do [ -f "$proxy" ] && cp "$proxy" "$work/root/etc/apt/apt.conf.d/"; done
  bare apt-get -qq update
  bare apt-get -qq install -y --no-install-recommends /try/tenon.deb > "$packages/apt.log" 2>&1 || { tail -5 "$packages/apt.log"; exit 1; }
  bare ldconfig -p | grep -q 'libtenon\.so\.' || { echo "$(basename "$deb"): the linker does not find libtenon.so"; exit 1; }
  try tenon "$(basename "$deb")" /usr/lib/libtenon.so
  finish
done

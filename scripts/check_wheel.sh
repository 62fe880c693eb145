#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries the wheel of `make wheel` in a fresh virtual environment of a bare Debian 12, where no compiler is: check_wheel.sh FOLDER [CHROOT].
# CHROOT (default build/debian12-python) is made by debootstrap where it is missing; that needs root. Skipped (status 77) without.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
wheels=$(cd "$1" && pwd)
root=${2:-$here/build/debian12-python}

skip() { echo "check_wheel.sh: skipped: $1"; exit 77; }
[ "$(id -u)" -eq 0 ] || skip "making a Debian 12 to try the wheel in needs root"
command -v debootstrap > /dev/null || skip "debootstrap is not installed"
if [ ! -f "$root/.complete" ]; then
  rm -rf "$root"
  debootstrap --variant=minbase --include=python3-venv,ca-certificates bookworm "$root" > "$wheels/debootstrap.log" 2>&1 ||
    { tail -5 "$wheels/debootstrap.log"; exit 1; }
  touch "$root/.complete"
fi

# A copy on top of it.
work=$(mktemp -d)
cleanup() { umount "$work/root/proc" "$work/root" "$work/upper" 2> /dev/null || true; rm -rf "$work"; }
trap cleanup EXIT
proxies=()
for name in http_proxy https_proxy no_proxy PIP_INDEX_URL PIP_EXTRA_INDEX_URL PIP_TRUSTED_HOST PIP_CERT; do
  [ -z "${!name:-}" ] || proxies+=("$name=${!name}")
done
bare() { chroot "$work/root" /usr/bin/env -i PATH=/usr/bin:/bin "${proxies[@]}" "$@"; }
mkdir -p "$work/root" "$work/upper"
mount -t tmpfs tmpfs "$work/upper"
mkdir -p "$work/upper/upper" "$work/upper/work"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/upper/upper,workdir=$work/upper/work" "$work/root"
mount -t proc proc "$work/root/proc"
cp /etc/resolv.conf "$work/root/etc/resolv.conf"
for file in /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
  [ -f "$file" ] && cp "$file" "$work/root$file"
done
mkdir "$work/root/try"
cp "$wheels"/tenon-*.whl "$here/examples/digits/digits.onnx" "$work/root/try/"
for tool in cc gcc clang ld; do
  if bare sh -c "command -v $tool" > /dev/null; then echo "check_wheel.sh: the bare system has $tool"; exit 1; fi
done

bare python3 -m venv /try/venv
bare sh -c '/try/venv/bin/pip -q --disable-pip-version-check install /try/tenon-*.whl'
bare /try/venv/bin/python - << 'END'
import time
begin = time.perf_counter()
import tenon
took = time.perf_counter() - begin
assert took < 0.05, took
import numpy as np
module = tenon.load("/try/digits.onnx")
program = tenon.compile(module, threads=2)
image = np.random.default_rng(0).random((4, 1, 8, 8), dtype=np.float32)
np.testing.assert_allclose(program(image), tenon.interpret(module, image), rtol=1e-3, atol=1e-5)
program.save("/try/digits.so")
np.testing.assert_array_equal(tenon.load("/try/digits.so")(image), program(image))
tenon.compile(module, target="llvm -mtriple=aarch64-linux-gnu").save("/try/arm.so")
try:
    tenon.compile(module, target="c")
except tenon.CompileError as error:
    assert "needs the C compiler" in str(error), error
else:
    raise AssertionError("no error without a compiler")
END
bare /try/venv/bin/tenon run /try/digits.so > /dev/null
echo "$(basename "$wheels"/tenon-*.whl): ok"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries the wheel of `make wheel` in a fresh virtual environment of a bare Debian 12, where no compiler is: check_wheel.sh FOLDER [CHROOT].
# CHROOT (default build/debian12-python) is made by debootstrap where it is missing; that needs root. Skipped (status 77) without.
# PYTHON names another Python of this system than Debian's, which is lent to the bare one.
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
cleanup() {
  [ -z "${lent:-}" ] || umount "$work/root$lent" || exit 1
  umount "$work/root/proc" "$work/root" "$work/upper" 2> /dev/null || true
  rm -rf --one-file-system "$work"
}
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
cp "$here/examples/digits/digits.onnx" "$work/root/try/"
for tool in cc gcc clang ld; do
  if bare sh -c "command -v $tool" > /dev/null; then echo "check_wheel.sh: the bare system has $tool"; exit 1; fi
done

python=python3
if [ -n "${PYTHON:-}" ]; then
  prefix=$("$PYTHON" -c 'import sys; print(sys.base_prefix)')
  if [ "$prefix" != /usr ]; then
    mkdir -p "$work/root$prefix"
    mount --bind -o ro "$prefix" "$work/root$prefix"
    lent=$prefix
    python=$("$PYTHON" -c 'import sys; print(sys.base_prefix + "/bin/python%d.%d" % sys.version_info[:2])')
  fi
fi
# What is for this Python alone, or for it and later ones.
tag=$(bare "$python" -c 'import sys; print("cp%d%d" % sys.version_info[:2])')
wheel=$(find "$wheels" -name "tenon-*-$tag-$tag-*.whl" | head -1)
[ -n "$wheel" ] || wheel=$(find "$wheels" -name 'tenon-*-abi3-*.whl' | head -1)
[ -n "$wheel" ] || { echo "check_wheel.sh: $wheels has no wheel for $tag; PYTHON names another Python" >&2; exit 1; }
name=$(basename "$wheel")
cp "$wheel" "$work/root/try/"

bare "$python" -m venv /try/venv
bare /try/venv/bin/pip -q --disable-pip-version-check install "/try/$name"
bare /try/venv/bin/python - << 'END'
import time
begin = time.process_time()  # a busy machine takes longer
import tenon
took = time.process_time() - begin
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
cat > "$work/root/try/network.py" << 'END'
from tenon.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.exp(x)
        return y
END
bare /try/venv/bin/tenon --version | grep '^tenon [0-9]' > /dev/null || { echo "$name: no version"; exit 1; }
for model in digits.onnx digits.so network.py; do
  bare /try/venv/bin/tenon run "/try/$model" | grep '^run ' > /dev/null || { echo "$name: tenon run $model fails"; exit 1; }
done
bare /try/venv/bin/tenon check /try/network.py | grep ': ok$' > /dev/null || { echo "$name: tenon check fails"; exit 1; }
echo "$name: ok with Python $(bare /try/venv/bin/python -c 'import platform; print(platform.python_version())')"

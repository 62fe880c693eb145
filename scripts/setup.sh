#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what building and testing need, from Debian 12's packages. Quick and silent when nothing is missing; as root or
# through sudo. `scripts/setup.sh models` adds what generating the larger test networks needs, `bench` what benchmarking needs, `python`
# what the Python package needs. `scripts/setup.sh --missing` installs nothing: it lists what building alone lacks.
set -euo pipefail

build=(
  g++ cmake ninja-build make ccache mold                               # to build
  llvm-19-dev liblld-19-dev lld-19 zlib1g-dev libzstd-dev                                     # backend/llvm
  protobuf-compiler libprotobuf-dev libonnx-dev                        # onnx
  libfmt-dev libcli11-dev nlohmann-json3-dev libxxhash-dev libdlpack-dev libjemalloc-dev libre2-dev
  libsqlite3-dev                                                       # tune
  libjpeg62-turbo-dev libpng-dev libtiff-dev libwebp-dev libopenjp2-7-dev                     # runtime/image
  libdnnl-dev libopenblas-dev                                          # backend/dnnl, backend/blas
  clang-19                                                             # presets default and dev, wheels
)
packages=(
  "${build[@]}"
  pkg-config                                                           # tests: programs that are linked with what is installed
  libgtest-dev libgmock-dev libbenchmark-dev                           # tests
  libclang-rt-19-dev clang-format-19 clang-tidy-19                     # preset asan, fuzz, format, lint
  tcc                                                                  # tests: generated C under a small compiler
  qemu-user libc6-dev-arm64-cross libgcc-12-dev-arm64-cross libstdc++-12-dev-arm64-cross       # tests: programs for AArch64
  git python3                                                          # scripts/
)
only_tells=
if [ "${1:-}" = --missing ]; then only_tells=1 packages=("${build[@]}") && shift; fi
for group in "$@"; do
  case "$group" in
    models) packages+=(python3-torch python3-torchvision python3-onnx python3-numpy) ;;
    bench) packages+=(python3-venv) ;;
    python) packages+=(python3-venv python3-dev) ;;
    *) echo "setup.sh: unknown group '$group' (models, bench, python)" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query > /dev/null; then
  [ -z "$only_tells" ] || exit 0
  echo "setup.sh: this is no Debian; install by hand what answers to: ${packages[*]}" >&2
  exit 1
fi
installed=$(dpkg-query -W -f='${db:Status-Status} ${binary:Package}\n' | sed -n 's/^installed //p' | sed 's/:.*//')
mapfile -t missing < <(printf '%s\n' "${packages[@]}" | grep -vxF "$installed" || true)
[ "${#missing[@]}" -gt 0 ] || exit 0
if [ -n "$only_tells" ]; then echo "${missing[*]}"; exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo > /dev/null || { echo "setup.sh: needs root or sudo to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0)
"${as_root[@]}" "${apt[@]}" update
"${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" > /dev/null

#!/usr/bin/env bash
# Compiles the digits network to a shared library and classifies the test images with it. Run it after `make build`.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=${BUILD:-$here/../../build}/bin
out=${BUILD:-$here/../../build}/digits.so

echo "\$ tenon compile examples/digits/digits.onnx -o build/digits.so"
"$bin/tenon" compile "$here/digits.onnx" -o "$out"
echo
echo "\$ digits build/digits.so examples/digits/test_images.npy examples/digits/test_labels.npy"
"$bin/digits" "$out" "$here/test_images.npy" "$here/test_labels.npy"

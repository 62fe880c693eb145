#!/usr/bin/env python3
"""Installs Tenon into a folder of its own and builds the accelerator's plugin against what is there, with CMake and with cc.

    install.py BUILD EXAMPLE    BUILD: where Tenon was built; EXAMPLE: examples/accelerator
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            **options)
    if result.returncode:
        sys.exit(f"{' '.join(map(str, command))}: status {result.returncode}\n{result.stdout}")
    return result.stdout


def main():
    build, example = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        prefix = work / "prefix"
        run("cmake", "--install", build, "--prefix", prefix)
        headers = sorted(str(path.relative_to(prefix)) for path in prefix.rglob("*.h"))
        wanted = ["include/tenon/backend.h", "include/tenon/runtime/abi.h", "include/tenon/runtime/tenon_runtime.h"]
        assert headers == wanted, headers

        lines = len((example / "acc_backend.c").read_text().splitlines())
        assert lines < 150, f"the back end has {lines} lines; it is to show that few are enough"

        # Nothing of the tree is in reach but a copy of the example.
        source = work / "example"
        shutil.copytree(example, source)
        sources = [source / "acc_backend.c", source / "accelerator.c"]
        plain = work / "acc.so"
        run("cc", "-std=c11", "-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror",
            f"-I{prefix / 'include'}", "-o", plain, *sources)
        run("cmake", "-S", source, "-B", work / "build", f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_BUILD_TYPE=Release")
        run("cmake", "--build", work / "build")
        for compiler, standard in (("cc", "c99"), ("c++", "c++11")):
            alone = work / ("alone.c" if compiler == "cc" else "alone.cpp")
            alone.write_text("#include <tenon/backend.h>\n")
            run(compiler, f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                f"-I{prefix / 'include'}", alone)

        tenon = prefix / "bin" / "tenon"
        environment = dict(os.environ, ACC_REPORT="1")
        for plugin in (plain, work / "build" / "acc.so"):
            printed = run(tenon, "run", source / "digits.onnx", "--plugin", plugin, env=environment)
            assert "accelerator: " in printed, printed
    print("ok")


if __name__ == "__main__":
    main()

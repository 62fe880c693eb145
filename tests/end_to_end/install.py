#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Installs Tenon into a folder of its own and builds against what is there: the accelerator's plugin, with CMake and with cc, and a
program that runs a compiled network, with CMake, by pkg-config and as a static library.

    install.py BUILD EXAMPLE    BUILD: where Tenon was built; EXAMPLE: examples/accelerator
"""

import os
import pathlib
import re
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
        wanted = ["include/tenon/backend.h", "include/tenon/runtime/abi.h", "include/tenon/runtime/dltensor.h",
                  "include/tenon/runtime/tenon_runtime.h"]
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
        if "__asan_init" in run("nm", "-D", prefix / "lib" / "libtenon.so"):
            print("skipped: programs that link a runtime with sanitizers need theirs")
        else:
            check_runtime(work, prefix, example / "digits.onnx")
    print("ok")


PROJECT = """cmake_minimum_required(VERSION 3.25)
project(user C CXX)
find_package(Tenon REQUIRED)
foreach(kind shared runtime)
  add_executable(user_${kind} digits_example.c)
  target_link_libraries(user_${kind} Tenon::${kind})
endforeach()
"""


def check_runtime(work, prefix, model):
    """A program that runs `model`, against the libraries and headers in `prefix`, which has moved since it was installed."""
    moved = prefix.rename(work / "moved")
    library = moved / "lib" / "libtenon.so"
    soname = re.search(r"SONAME\s+(\S+)", run("objdump", "-p", library)).group(1)
    assert re.fullmatch(r"libtenon\.so\.[0-9]+", soname) and (moved / "lib" / soname).exists(), soname
    assert library.is_symlink(), "libtenon.so is a name of the version that is there"
    # Nothing of the C++ in it is to be seen.
    exported = [line.split()[-1] for line in run("nm", "-D", "--defined-only", library).splitlines()]
    declared = re.findall(r"\b(tenon_\w+)\(", (moved / "include/tenon/runtime/tenon_runtime.h").read_text())
    assert sorted(exported) == sorted(set(declared)), (exported, declared)

    user = work / "user"
    user.mkdir()
    run(moved / "bin" / "tenon", "compile", model, "--name", "digits", "--emit", "c-example", "-o", user / "digits.so")
    (user / "CMakeLists.txt").write_text(PROJECT)
    run("cmake", "-S", user, "-B", user / "build", f"-DCMAKE_PREFIX_PATH={moved}", "-DCMAKE_BUILD_TYPE=Release")
    run("cmake", "--build", user / "build")
    programs = [user / "build" / "user_shared", user / "build" / "user_runtime"]
    if shutil.which("pkg-config"):
        environment = dict(os.environ, PKG_CONFIG_PATH=str(moved / "lib" / "pkgconfig"))
        assert run("pkg-config", "--modversion", "tenon", env=environment).strip()
        flags = run("pkg-config", "--cflags", "--libs", "tenon", env=environment).split()
        run("cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", user / "digits_example.c", *flags, "-o", user / "plain")
        programs.append(user / "plain")
    printed = {run(program, user / "digits.so", env=dict(os.environ, LD_LIBRARY_PATH=str(moved / "lib"))) for program in programs}
    assert len(printed) == 1 and "probabilities: float32 (" in printed.pop(), printed


if __name__ == "__main__":
    main()

# The everyday commands. `make help` lists them; CMake (CMakePresets.json) does the building.

BUILD := build
TENON := $(BUILD)/bin/tenon
JOBS ?= $(shell nproc)
# Where the larger test networks lie, or are generated to.
MODELS ?= $(BUILD)/models
# Options for `make bench`, for example BENCH="--models resnet50 --threads 1 --rounds 9".
BENCH ?=
# Options for `make test-long`, for example LONG="--only partitions".
LONG ?=
# ONNX's operator cases, for `make test-long`; where they are not, that step is skipped.
CONFORMANCE ?= ../shared/onnx-conformance

# Options for `make test-torch`, for example TORCH="--only gpt,resnet18".
TORCH ?=

# Where `make install` installs.
PREFIX ?= /usr/local

# Another Python for `make wheel`, for example PYTHON=python3.12.
PYTHON ?=

# How long `make fuzz` looks.
SECONDS ?= 600

.DEFAULT_GOAL := help
.PHONY: help setup build tenon python docs notebooks test-python wheel run test test-fast test-haswell fuzz test-long test-models test-quantised test-language-models test-sklearn test-torch test-zoo models zoo quantised language-models sklearn bench install package format format-check lint asan tsan clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*##  *\(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | column -t -s '|'

setup:  ## install what is missing (Debian packages)
	@scripts/setup.sh

# A build folder that another preset configured is kept as it is.
$(BUILD)/build.ninja: | setup
	cmake --preset default

build: setup $(BUILD)/build.ninja  ## build everything
	cmake --build $(BUILD) -j $(JOBS)

tenon: setup $(BUILD)/build.ninja  ## build the compiler alone, without the tests
	cmake --build $(BUILD) -j $(JOBS) --target tenon digits

python: setup  ## the Python package, in build/python: PYTHONPATH=build/python build/python-venv/bin/python
	@python/venv.sh $(BUILD) > /dev/null
	@[ -f $(BUILD)/build.ninja ] && cmake -B $(BUILD) -DTENON_PYTHON=ON > /dev/null || cmake --preset default -DTENON_PYTHON=ON
	cmake --build $(BUILD) -j $(JOBS) --target tenon_python tenon_python_stub

wheel: python  ## a wheel that needs nothing but numpy and glibc, in build/wheel, tried in a bare Debian 12 where root and debootstrap are there; for 3.12 and newer: PYTHON=python3.12
	@PYTHON=$(PYTHON) python/make_wheel.sh $(BUILD)
	@PYTHON=$(PYTHON) scripts/check_wheel.sh $(BUILD)/wheel || [ $$? -eq 77 ]

docs: python  ## the site of all pages, the notebooks and the reference of the Python package: build/docs/html/index.html
	@python/venv.sh $(BUILD) docs > /dev/null
	PYTHONPATH=$(BUILD)/python $(BUILD)/docs-venv/bin/python docs/site/build.py $(BUILD)/docs

notebooks: python  ## run the notebooks and write what they print into them
	@python/venv.sh $(BUILD) docs > /dev/null
	PYTHONPATH=$(BUILD)/python $(BUILD)/docs-venv/bin/python examples/notebooks/run.py --update

test-python: python  ## the tests of the Python package
	PYTHONPATH=$(BUILD)/python $(BUILD)/python-venv/bin/python -m pytest -q python/tests

run: tenon  ## compile the bundled digits network and classify its test images
	examples/digits/run.sh

# What was compiled before is no part of a test.
test test-fast test-haswell test-long test-models test-zoo: export TENON_CACHE := off

test: build  ## all tests, the fast ones first
	ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error

test-fast: build  ## the tests that take seconds
	ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error -L fast

test-long: build  ## full counts of the property tests; all networks and ONNX's cases at every target, on threads, with libraries (hours)
	@scripts/test_long.py --build $(BUILD) --models $(MODELS) --networks $(BUILD) --conformance $(CONFORMANCE) $(LONG)

test-haswell: build  ## all tests as a host with AVX2 and no AVX-512 runs them
	TENON_HOST="llvm -mcpu=haswell" ONEDNN_MAX_CPU_ISA=AVX2 OPENBLAS_CORETYPE=Haswell \
	  ctest --test-dir $(BUILD) -j $(JOBS) --output-on-failure --no-tests=error

fuzz: setup $(BUILD)/build.ninja  ## random programs of every kind side by side: make fuzz SECONDS=3600 [SEED=1]
	cmake --build $(BUILD) -j $(JOBS) --target tenon fuzz_graphs fuzz_tir $$(cmake --build $(BUILD) --target help | grep -o '^fuzz_readers' | head -1)
	@scripts/fuzz.py --build $(BUILD) --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) --out $(BUILD)/fuzz

models:  ## generate the larger test networks into build/models (about 3 minutes, 1.8 GB)
	@scripts/make_models.sh $(MODELS)

test-models: tenon models  ## the larger test networks, and the whole networks that ONNX tests with
	$(TENON) test-onnx --tolerance 1e-4 $(MODELS)
	$(TENON) test-onnx "$$("$$(bench/python.sh)" -c 'import onnx, pathlib; print(pathlib.Path(onnx.__file__).parent / "backend/test/data/light")')"

zoo:  ## networks of other kinds (detectors, video, speech, diffusion, graphs, translation ...) into build/zoo (3 minutes, 700 MB)
	@scripts/make_models.sh $(BUILD)/zoo make_zoo.py

test-zoo: tenon zoo  ## those networks: 1e-3 (1 + the largest output)
	$(TENON) test-onnx --tolerance 1e-3 $(BUILD)/zoo

quantised: models  ## int8 forms of test networks by ONNX Runtime (PyPI) into build/quantised (10 minutes, 400 MB)
	@"$$(bench/python.sh)" scripts/quantize_models.py --models $(MODELS) --out $(BUILD)/quantised

test-quantised: tenon quantised  ## the int8 networks: one step of a quantised output from ONNX Runtime's at most
	$(TENON) test-onnx $(BUILD)/quantised

language-models:  ## decoders with caches of 15, 110 and 500 million parameters into build/language (5 minutes, 8 GB)
	@"$$(bench/python.sh)" scripts/make_language_models.py --out $(BUILD)/language $(if $(SIZES),--sizes $(SIZES))

test-language-models: tenon language-models  ## the decoders against ONNX Runtime: 1e-3 (1 + the largest output)
	$(TENON) test-onnx --tolerance 1e-3 $(BUILD)/language

sklearn:  ## four scikit-learn pipelines exported by skl2onnx (PyPI) into build/sklearn (a minute)
	@"$$(bench/python.sh)" scripts/make_sklearn.py --out $(BUILD)/sklearn

test-sklearn: tenon sklearn  ## the scikit-learn pipelines, in batches of 1 and 1000
	$(TENON) test-onnx --tolerance 1e-4 $(BUILD)/sklearn

test-torch: python  ## networks of torch by tenon.from_torch and torch.compile, against torch (6 GB from PyPI in build/torch-venv; TORCH="--only gpt")
	PYTHONPATH=$(BUILD)/python "$$(python/torch_venv.sh $(BUILD))" -m pytest -q python/tests/test_torch.py python/tests/test_call.py \
	  'python/tests/test_script_pages.py::test_page[docs/python-frameworks.md]'
	PYTHONPATH=$(BUILD)/python "$$(python/torch_venv.sh $(BUILD))" scripts/test_torch.py $(TORCH)

bench: tenon models  ## time against ONNX Runtime, OpenVINO, MNN, LiteRT and ncnn; build/bench.json and build/bench.svg (2 GB from PyPI)
	@bench/bench.sh --tenon $(TENON) --models-dir $(MODELS) --prepared $(BUILD)/bench-prepared --json $(BUILD)/bench.json --plot $(BUILD)/bench.svg $(BENCH)

install: tenon  ## install the compiler, the runtime and its headers below PREFIX (/usr/local)
	cmake --install $(BUILD) --prefix $(PREFIX)

package: tenon  ## a release archive and a .deb in build/package, tried in a bare Debian 12 where root and debootstrap are there
	cmake --build $(BUILD) --target package
	@scripts/check_package.sh $(BUILD)/package || [ $$? -eq 77 ]

format:  ## format all C++ sources
	@git ls-files '*.cpp' '*.h' | xargs clang-format-19 -i

format-check:  ## sources are formatted and name their licence
	@git ls-files '*.cpp' '*.h' | xargs clang-format-19 --dry-run -Werror
	@unnamed=$$(git ls-files 'src/*.cpp' 'src/*.h' 'include/*.h' 'tests/unit/*.cpp' 'scripts/*' | grep -v dnnl/steps.h | \
	  xargs grep -L SPDX-License-Identifier); [ -z "$$unnamed" ] || { echo "no licence in the first line: $$unnamed"; exit 1; }

lint: build  ## includes and names of classes, then clang-tidy over what changed (LINT=all: over everything)
	@scripts/check_includes.py
	@scripts/check_names.py
	@scripts/lint.sh $(LINT)

asan: setup  ## the tests with address and undefined-behaviour sanitizers
	cmake --preset asan
	cmake --build build-asan -j $(JOBS)
	ctest --test-dir build-asan -j $(JOBS) --output-on-failure --no-tests=error

tsan: setup  ## what runs on threads (the pool, pipelines, random graphs of calls, deferred work) with the thread sanitizer, which knows no threads after a fork
	cmake --preset tsan
	cmake --build build-tsan -j $(JOBS) --target test_runtime test_backend_llvm test_support test_interp test_driver
	ctest --test-dir build-tsan -j $(JOBS) --output-on-failure --no-tests=error -R '^(ThreadPool|Program|Pipeline|CallGraphs|DeferredWork|KernelValue|Constants)' -E ChildOfAFork

clean:  ## remove what was built
	rm -rf build build-asan build-gcc build-tsan

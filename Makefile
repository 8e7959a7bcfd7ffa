# Craton's commands are `make run`, `make check` and `make test`; `make help` lists the rest.

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
TARGET := $(or $(CARGO_TARGET_DIR),target)
export CARGO PREFIX DESTDIR

.DEFAULT_GOAL := help
# Peers are other people's allocators: built apart, and only when asked for.
.PHONY: help build run check test nightly book kernel-demo peers frames-peer heaps-peer bench install uninstall fmt

help: ## this list
	@echo "make TARGET, where TARGET is one of:"
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	  while IFS='|' read -r name text; do printf '  %-11s %s\n' "$$name" "$$text"; done
	@echo "Variables: PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) (install, uninstall), CARGO_TARGET_DIR"

# `craton run` stands in the way of every program that it starts: linked statically it is there 0.3 ms sooner.
# The library is built by itself, as for the tests: beside other packages it would have other features, and be built again.
# The library of persistent heaps unwinds: a panic ends in the call that found damage, and becomes its error.
# Incremental builds would divide the code into other units, and so change the fast paths.
build: ## build the program, the library and the lab's programs, optimized
	CARGO_INCREMENTAL=0 $(CARGO) build --release -p craton-preload
	CARGO_INCREMENTAL=0 $(CARGO) build --release -p craton-lab
	CARGO_INCREMENTAL=0 CARGO_PROFILE_RELEASE_PANIC=unwind $(CARGO) build --release -p craton-pheap-c
	CARGO_INCREMENTAL=0 $(CARGO) build --release -p craton-kv
	CARGO_INCREMENTAL=0 $(CARGO) build --release --manifest-path papers/Cargo.toml --target-dir $(TARGET)
	CARGO_INCREMENTAL=0 $(CARGO) rustc --release -p craton-cli --bin craton -- -C target-feature=+crt-static

run: build ## the main job: compare glibc and Craton on the bundled server and on programs found here
	@scripts/demo.sh

check: ## format, tidy, lints, unit tests: two minutes after the first build
	@scripts/test.sh check

test: ## install what the tests need (apt), then run every check and test
	@scripts/test.sh test

nightly: ## the same, with the tests that take minutes and many more cases in the randomized ones
	@scripts/test.sh nightly

book: ## build the documents as a book, by mdBook: target/book/html/index.html
	@scripts/book.sh

kernel-demo: ## boot the bare-metal guest in QEMU: checks, then the benchmarks of page frames; CPUS, MEMORY, ACCEL=kvm
	@scripts/kernel.sh demo

peers: ## build other allocators to compare with (minutes, once); PEERS="mimalloc3 …" for some
	@scripts/peers.sh $(PEERS)

frames-peer: ## build LLFree by its authors, for the experiments llfree-…; LLFREE_SOURCE=PATH of a clone, without network
	@scripts/frames-peer.sh

heaps-peer: ## build NVAlloc by its authors, for the experiments nvalloc-…; NVALLOC_SOURCE=PATH of a clone, without network
	@scripts/heaps-peer.sh

bench: build peers ## do the lab's experiments in full, and renew results/ and the README's table (an hour)
	@scripts/bench.sh

install: $(if $(shell command -v $(CARGO) 2>/dev/null),build) ## install program, libraries, headers, pkg-config and CMake files, documents
	@scripts/install.sh "$(TARGET)/release"

uninstall: ## remove what `install` installed under the same PREFIX and DESTDIR
	@scripts/install.sh --uninstall

fmt: ## format the sources
	$(CARGO) fmt --all
	$(CARGO) fmt --all --manifest-path papers/Cargo.toml
	$(CARGO) fmt --all --manifest-path peers/Cargo.toml
	$(CARGO) fmt --all --manifest-path peers-frames/llfree/Cargo.toml

# The two commands of the README, and the steps that they consist of.
#
#   make demo       the main job: a parallel job on two nodes, with and without coscheduling (about 9 minutes)
#   make test       unit, property and differential tests, and the scheduler in a VM
#   make            build target/release/scx_cosched
#   make bench-local what "local" costs against EEVDF on hackbench (about 5 minutes)
#   make soak       a million messages to parked tasks, and a thousand switches of the policy: half an hour
#   make bench-policies every preset, the kernel's own scheduler and another sched_ext scheduler, in four scenarios
#   make reproduction the papers' figures by the simulator, and docs/reproduction.md of them
#   make lint       formatting and warnings
#   make install    into $(DESTDIR)$(PREFIX)/bin

PREFIX ?= /usr/local
CARGO ?= cargo
binary := target/release/scx_cosched

.PHONY: all setup build demo test unit vm-test soak bench-local bench-policies reproduction lint install clean

all: build

setup:
	@tests/setup

build: setup
	$(CARGO) build --release --locked

demo: build
	@tests/vm/demo target/demo

test: unit vm-test

unit: build
	$(CARGO) test --release --locked

vm-test: build
	tests/vm/selftest
	tests/vm/suite

soak: build
	COSCHED_SOAK=1 tests/vm/suite parked_tasks_lose_no_message switches_policies_under_load

bench-local: build
	@tests/vm/bench-local

bench-policies: build
	@tests/vm/bench-policies --peer

reproduction: build
	$(binary) sim paper all --runs 2 --iterations 1000 --out docs/reproduction --page docs/reproduction.md

lint: setup
	$(CARGO) fmt --check
	$(CARGO) clippy --release --locked --all-targets -- -D warnings

install: build
	install -D -m 755 $(binary) $(DESTDIR)$(PREFIX)/bin/scx_cosched

clean:
	$(CARGO) clean

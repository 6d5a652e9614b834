# The two commands of the README, and the steps that they consist of.
#
#   make demo       the main job: a parallel job on two nodes, with and without coscheduling, in virtual time
#   make test       unit, property and differential tests, and the scheduler in a VM
#   make            build target/release/scx_cosched
#   make bench-local what "local" costs against EEVDF on hackbench
#   make soak       a million messages to parked tasks, and a thousand switches of the policy: a quarter of an hour
#   make bench-regress twenty scenarios in virtual time against the stored results of a release
#   make bench-policies every preset, the kernel's own scheduler and another sched_ext scheduler, in four scenarios
#   make bench-mpi  Open MPI and MPICH on two nodes that other jobs want too
#   make bench-slurm two jobs on two nodes of a Slurm cluster, under its gang scheduling and under scx_cosched
#   make bench-rdma the same of pairs that talk by soft RoCE
#   make bench-wire what hooks, epochs on the wire and XDP cost those who move data
#   make bench-sim  the simulator beside SimGrid (a Debian package) and NeXosim (a crate), which it fetches (about 10 minutes)
#   make reproduction the papers' figures by the simulator, and docs/reproduction.md of them
#   make scale      docs/scale.md, what to expect on 2 to 65,536 nodes, by the simulator
#   make docs       the pages and the picture that are made of the code and of stored figures
#   make fuzz       fuzzes all that reads input from outside, FUZZ_SECONDS=60 each, two side by side
#   make lint       formatting, warnings, shellcheck, and cargo-deny, which it installs if it is missing
#   make package    the Debian package, below target/package
#   make package-test  the same, installed, upgraded and purged in a clean Debian tree, and run by its systemd, as root
#   make report-test the page of a bench's figures, shown in Chromium, which it installs
#   make release VERSION=X.Y.Z  lint, all tests, the package, a commit and a tag
#   make install    the program, libcosched, its header and the library for MPI programs, below $(DESTDIR)$(PREFIX)
#   make mutants    seeds faults into the rules and the parking model, and counts how many the tests catch (half an hour)

PREFIX ?= /usr/local
CARGO ?= cargo
out := target/release
binary := $(out)/scx_cosched

# libcosched: programs that say when they wait (docs/hints.md), and the one that tests it.
hints := $(out)/libcosched.so.0 $(out)/libcosched_mpi.so $(out)/hinter
hints_flags := -std=c11 -O2 -g -Wall -Wextra -Werror -fexceptions $(CFLAGS)
shared_flags := $(hints_flags) -fPIC -shared -pthread -Wl,-z,nodelete -Wl,-z,defs $(LDFLAGS)

.PHONY: all setup build demo test unit vm-test vm-selftest-base vm-selftest-virtual vm-regress vm-kernels soak docs lint package
.PHONY: package-test release install mutants clean report-test bench-local bench-policies bench-regress bench-mpi bench-rdma bench-wire bench-sim
.PHONY: reproduction scale fuzz kubernetes grafana shellcheck licences bench-slurm

all: build

setup:
	@tests/setup

$(hints): | setup

# With examples cargo takes the features that tests ask for, so that "test" and "package" compile nothing anew.
build: setup $(hints)
	$(CARGO) build --release --locked --lib --bins --examples

$(out)/libcosched.so.0: hints/cosched.c hints/link.h hints/cosched.h hints/hint.h
	@mkdir -p $(@D)
	$(CC) $(shared_flags) -Wl,-soname,$(@F) -o $@ hints/cosched.c

$(out)/libcosched_mpi.so: hints/mpi.c hints/cosched.c hints/link.h hints/cosched.h hints/hint.h
	@mkdir -p $(@D)
	$(CC) $(shared_flags) -Wl,-soname,$(@F) -o $@ hints/mpi.c hints/cosched.c -ldl

$(out)/hinter: tests/vm/hinter.c $(out)/libcosched.so.0
	$(CC) $(hints_flags) -pthread -Wl,-rpath,'$$ORIGIN' -o $@ $^

demo: build
	@tests/vm/demo target/demo

# The fuzzers take a short time here, unless CI or somebody else says how long.
test: unit kubernetes grafana
	FUZZ_SECONDS=$${FUZZ_SECONDS:-15} tests/fuzz/run
	$(MAKE) vm-test

unit: build
	$(CARGO) test --release --locked

fuzz: setup
	tests/fuzz/run

kubernetes: build
	tests/kubernetes

grafana: setup
	tests/grafana

# The first four take one CPU each, nearly all the time; the suite takes two.
vm-test: build
	$(MAKE) --jobs=2 --output-sync=target vm-selftest-base vm-selftest-virtual vm-regress vm-kernels
	tests/vm/suite

vm-selftest-base vm-selftest-virtual: vm-selftest-%: build
	tests/vm/selftest $*

vm-regress: build
	tests/vm/bench-regress --short

# What one verifier takes another may refuse: the oldest kernel that is tried at all, and one with long-term support.
vm-kernels: build
	tests/vm/series --on "6.16 6.18" loads_and_attaches

report-test: build
	@tests/setup chromium:chromium
	$(CARGO) test --release --locked --test bench_report -- --include-ignored

soak: build
	COSCHED_SOAK=1 tests/vm/suite parked_tasks_lose_no_message switches_policies_under_load \
		comes_back_from_every_fault

bench-local: build
	@tests/vm/bench-local

bench-policies: build
	@tests/vm/bench-policies --peer

bench-regress: build
	@tests/vm/bench-regress

bench-mpi: build
	@tests/vm/bench-mpi

bench-slurm: build
	@tests/vm/bench-slurm

bench-rdma: build
	@tests/vm/bench-rdma

bench-wire: build
	@tests/vm/bench-wire

bench-sim: build
	@tests/bench-sim/run

# Figures whose jobs become longer until the interval is narrow, those with streams of jobs, whose intervals are wide,
# and the others. The demo as `make demo` measured it is in docs/measurements.
until_narrow = $(addprefix dusseau-,2 3 4 5 6 8 9 10 11 12 13 readings)
streams = $(addprefix zhang-,fig3 fig4 fig5 tab4 tab5)
others = $(addprefix thesis-3-,2 3 4 5) $(addprefix arpaci-,4 5)

reproduction: build
	$(binary) sim replay docs/measurements/demo.json --runs 15 --out docs/reproduction
	$(binary) sim paper $(until_narrow) --runs 3 --iterations 100000 --out docs/reproduction
	$(binary) sim paper arpaci-3 --runs 3 --iterations 10000 --out docs/reproduction
	$(binary) sim paper $(streams) --runs 16 --out docs/reproduction
	$(binary) sim paper zhang-readings --runs 8 --out docs/reproduction
	$(binary) sim paper $(others) --runs 2 --out docs/reproduction --page docs/reproduction.md

scale: build
	$(binary) sim scale all --runs 3 --out docs/scale --page docs/scale.md

# Tests hold these pages against the code; here they write them.
docs: build
	COSCHED_WRITE_DOCS=1 $(CARGO) test --release --locked --test docs_generated --test docs_picture --test top

lint: shellcheck licences
	$(CARGO) fmt --check
	$(CARGO) clippy --release --locked --all-targets -- -D warnings

shellcheck:
	@tests/setup shellcheck:shellcheck
	tests/lint-shell

# No advisories: their database is a repository of GitHub's, which a machine with package registries alone cannot reach.
licences:
	command -v cargo-deny >/dev/null || $(CARGO) install --locked --debug --version 0.20.2 cargo-deny
	$(CARGO) deny check licenses bans sources

# The manual pages and the completions come from the command line's definition.
package: build
	@tests/setup dpkg-shlibdeps:dpkg-dev strip:binutils
	$(CARGO) run --release --locked --example manuals -- $(abspath $(out)/../package)
	packaging/build-deb

package-test: package
	@tests/setup lintian:lintian mmdebstrap:mmdebstrap
	tests/package
	tests/vm/package

release:
	packaging/release $(VERSION)

install: build
	install -D -m 755 -t $(DESTDIR)$(PREFIX)/bin $(binary) $(binary)-bench $(binary)-sim
	install -D -m 644 hints/cosched.h $(DESTDIR)$(PREFIX)/include/cosched.h
	install -D -m 755 $(out)/libcosched.so.0 $(DESTDIR)$(PREFIX)/lib/libcosched.so.0
	ln -sf libcosched.so.0 $(DESTDIR)$(PREFIX)/lib/libcosched.so
	install -m 755 $(out)/libcosched_mpi.so $(DESTDIR)$(PREFIX)/lib/libcosched_mpi.so

mutants: build
	@tests/mutants/run

clean:
	$(CARGO) clean

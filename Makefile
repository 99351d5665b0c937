# SPDX-License-Identifier: BSD-3-Clause
# Flashield's build. "make help" lists the targets.
#
#   VARIANT=release|debug|asan|tsan   which flags (release; unit tests debug), objects in build/obj/VARIANT;
#                                     coverage; sched; fuzz with CC=clang
#   CC=clang                          another compiler (kept apart from gcc's objects); CXX follows it
#   EMULATOR=qemu-aarch64-static      runs what CC=aarch64-linux-gnu-gcc has built, on a machine of another kind
#   WERROR=1                          warnings are errors
#   V=1                               show the commands
#   BUILD=dir                         build elsewhere than in build/
#
# A new source file needs no line here: each folder's *.c belong to the product named below.

VARIANT ?= $(if $(filter unit unit-build,$(MAKECMDGOALS)),debug,release)
BUILD ?= build
PREFIX ?= /usr/local
DESTDIR ?=
ifeq ($(origin CC),default)
CC := gcc
endif
ifeq ($(origin CXX),default)
CXX := $(subst clang,clang++,$(patsubst %cc,%c++,$(subst gcc,g++,$(CC))))
endif

ifeq ($(filter $(VARIANT),release debug asan tsan coverage sched fuzz),)
$(error VARIANT is "$(VARIANT)", but must be one of release, debug, asan, tsan, coverage, sched, fuzz)
endif

compiler := $(notdir $(firstword $(CC)))
tag := $(VARIANT)$(if $(filter gcc cc,$(compiler)),,-$(compiler))
O := $(BUILD)/obj/$(tag)
B := $(if $(filter release,$(tag)),$(BUILD),$(BUILD)/$(tag))
T := $(BUILD)/$(tag)/tests

# --- flags ------------------------------------------------------------------------------------

warnings := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wcast-qual -Wundef -Wvla -Wformat=2 -Wwrite-strings -Wimplicit-fallthrough \
	-Wmissing-declarations -Wunused-result -Wold-style-definition -Wredundant-decls
warnings += $(if $(filter 1,$(WERROR)),-Werror)

# A distribution's own level of fortification stays.
cflags_release := -O2 -g -fstack-protector-strong $(if $(findstring _FORTIFY_SOURCE,$(CPPFLAGS) $(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
cflags_debug := -O1 -g -fstack-protector-strong -DFS_DEBUG -DFS_FAULTS
# Lines are what a sanitizer's report needs of debug information.
cflags_asan := -O1 -g1 -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=undefined -DFS_DEBUG -DFS_FAULTS -DFS_LIBC_MALLOC
cflags_tsan := -O1 -g1 -fno-omit-frame-pointer -fsanitize=thread \
	-DFS_DEBUG -DFS_FAULTS -DFS_LIBC_MALLOC
# Threads may lose each other's counts, but a line that ran is never counted as 0.
cflags_coverage := -O0 -g --coverage -DFS_DEBUG -DFS_FAULTS
# As for the thread sanitizer, which is not linked: tests/sched has the functions that the compiler then calls. Its name is
# taken away, so that the code is the product's.
cflags_sched := -O1 -g -DFIDX_PLAIN -fno-omit-frame-pointer -fsanitize=thread --param=tsan-instrument-func-entry-exit=0 -U__SANITIZE_THREAD__ \
	-DFS_DEBUG -DFS_FAULTS -DFS_LIBC_MALLOC
cflags_fuzz := $(cflags_asan) -fsanitize=fuzzer-no-link
ldflags_asan := -fsanitize=address,undefined
ldflags_tsan := -fsanitize=thread
ldflags_coverage := --coverage
ldflags_fuzz := $(ldflags_asan)
# Three hundred unit tests: gold, where there is one, links them in half the time, and what is tested is compiled as always, not what
# tests.
quick := $(filter debug asan tsan,$(VARIANT))
ldflags_$(VARIANT) += $(if $(quick),$(if $(shell command -v ld.gold),-fuse-ld=gold))
malloc_lib := $(if $(filter asan tsan sched fuzz,$(VARIANT)),,-ljemalloc)

all_cppflags := -I. -D_GNU_SOURCE $(CPPFLAGS)
# Without contraction a score or a model is the same number on every machine, whether it has a fused multiply-add or not.
all_cflags := -std=gnu11 -ffp-contract=off -fPIE -pthread $(warnings) $(cflags_$(VARIANT)) $(CFLAGS)
# vptr would need a part of the sanitizer that only a C++ linker adds.
all_cxxflags := -std=gnu++17 -fPIE -pthread $(filter-out %-prototypes -Wold-style-definition,$(warnings)) \
	$(cflags_$(VARIANT)) $(if $(filter asan fuzz,$(VARIANT)),-fno-sanitize=vptr) $(CXXFLAGS)
all_ldflags := -pie -pthread -Wl,-z,relro,-z,now -Wl,--as-needed $(ldflags_$(VARIANT)) $(LDFLAGS)

# What the engine needs, what the daemon needs beside it, and what the tools do.
metrics_libs := -lmicrohttpd -lgnutls -lcrypt -lprometheus-cpp-core -lstdc++
engine_libs := -llinear -laio -linih -ljansson $(malloc_lib) -lm
server_libs := -levent -levent_pthreads -lssl -lcrypto -lsasl2 -lsystemd -lseccomp $(metrics_libs)
tool_libs := -lz -lssl -lcrypto
# What a single tool needs.
tool_libs_top := -lncursesw -ltinfo
tool_libs_record := -lcrypto

# --- sources, by folder -----------------------------------------------------------------------

store_dirs := server/store $(addprefix server/store/,state dram cleaner request report)
engine_dirs := base base/metrics conf classifier flashindex flashindex/frugal segments $(store_dirs)
server_dirs := server server/conn server/count server/net server/proto server/admin server/auth server/metrics
tool_dirs := $(sort $(patsubst tools/%/main.c,%,$(wildcard tools/*/main.c)))

sources = $(wildcard $(addsuffix /*.c,$(1)))
sources_cxx = $(wildcard $(addsuffix /*.cc,$(1)))
objects = $(patsubst %.c,$(O)/%.o,$(call sources,$(1))) $(patsubst %.cc,$(O)/%.o,$(call sources_cxx,$(1)))

engine_objs := $(call objects,$(engine_dirs))
server_objs := $(call objects,$(server_dirs))
model_objs := $(call objects,tests/model)
sched_objs := $(call objects,tests/sched)
stale_objs := $(call objects,tests/stale) $(O)/tests/model/wire.o
ketama_objs := $(call objects,tests/nodes)
unit_all_srcs := $(sort $(shell find tests/unit -name '*.c'))
unit_srcs := $(foreach file,$(unit_all_srcs),$(if $(filter test_%,$(notdir $(file))),$(file)))
unit_tests := $(patsubst tests/unit/%.c,$(T)/%,$(unit_srcs))
fuzz_srcs := $(wildcard tests/fuzz/fuzz_*.c)
fuzz_targets := $(patsubst tests/fuzz/fuzz_%.c,%,$(fuzz_srcs))
fuzz_helpers := $(filter-out $(fuzz_srcs) tests/fuzz/replay.c,$(wildcard tests/fuzz/*.c))
all_srcs := $(sort $(call sources,$(engine_dirs) $(server_dirs) $(addprefix tools/,common slowdrive $(tool_dirs)) \
	tests/model tests/stale tests/sched tests/nodes tests/fuzz) $(unit_all_srcs))
all_srcs_cxx := $(sort $(call sources_cxx,$(server_dirs)))

lib_engine := $(B)/libflashield.a
programs := $(if $(server_objs),$(B)/flashield) $(addprefix $(B)/flashield-,$(tool_dirs))
# The unit tests whose path contains TEST, with or without the store's room: "store/crawl" is server/store/cleaner/test_crawl.
without_room = $(subst /state/,/,$(subst /dram/,/,$(subst /cleaner/,/,$(subst /request/,/,$(subst /report/,/,$(1))))))
unit_chosen := $(strip $(if $(TEST),$(foreach test,$(unit_tests),\
	$(if $(findstring $(TEST),$(subst /test_,/,$(test)) $(call without_room,$(subst /test_,/,$(test))) $(test)),$(test))),$(unit_tests)))
# A sanitizer's runtime would have to come before it.
preload := $(if $(filter release debug,$(VARIANT)),$(B)/slowdrive.so)
model := $(if $(model_objs),$(B)/model_client)
stale := $(B)/stale_worker
ketama := $(B)/ketama_client

# --- targets ----------------------------------------------------------------------------------

.PHONY: all help run bench test test-all check release syntax unit unit-build list-unit-tests coverage fuzz fuzz-build fuzz-keep asan tsan mutants sched soak clean deps deps-test model stale nodes reference format sample-config FORCE
.DELETE_ON_ERROR:
.SECONDEXPANSION:
.SECONDARY:

all: $(lib_engine) $(programs) $(preload) ## builds the programs into build/ (default)

help: ## lists the targets
	@sed -n 's/^#\( .*\)/\1/p' Makefile | sed -n '3,9p'
	@echo
	@sed -n 's/^\([a-z_.-]*\):.*## \(.*\)/  \1|\2/p' Makefile packaging/install.mk | while IFS='|' read -r name text; do \
		printf '  %-24s %s\n' "$$name" "$$text"; done

run: ## installs what is missing, builds, and shows a daemon under a generated load
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory VARIANT=release all
	@tools/run-demo.sh

bench: ## measures, memcached beside: STUDIES="ops flash" SCALE=0.1 BASE=earlier.json JSON=file
	@$(MAKE) --no-print-directory deps-test
	@$(MAKE) --no-print-directory all
	@mkdir -p $(BUILD)/bench && file=$(or $(JSON),$(BUILD)/bench/$$(date +%Y%m%d-%H%M%S).json) && \
	$(B)/flashield-bench --dir $(BUILD)/bench --json $$file $(if $(SCALE),--scale $(SCALE)) \
		$(if $(BASE),--base $(BASE)) $(STUDIES) && \
	if [ $$file != - ]; then ln -sfn $$(realpath $$file) $(BUILD)/bench/latest.json; fi

test: ## installs what is missing, builds, runs the tests that find most; last line "N passed, N failed"
	@$(MAKE) --no-print-directory deps-test
	@/usr/bin/python3 tools/run-tests.py gate

test-all: ## every test: also TSan, clients, the comparison with memcached, fuzz corpora, the daemon under ASan
	@$(MAKE) --no-print-directory deps-test
	@/usr/bin/python3 tools/run-tests.py all

check: ## style and consistency; silent when clean
	+@CC="$(CC)" MAKE="$(MAKE) --no-print-directory" tools/check/check.sh

release: ## checks that version, changelog and tag agree, and builds the packages into BUILD/release: DRY=1 only tells (HACKING.md)
	@tools/release.sh $(if $(DRY),--dry-run) $(BUILD)/release

unit-build: $(unit_tests) ## builds the unit tests of VARIANT

unit: $(unit_chosen) ## runs the unit tests of VARIANT; TEST=store/crawl: those whose path contains it
	$(if $(unit_chosen),,$(error no unit test has "$(TEST)" in its path))
	@failed=0; for t in $(unit_chosen); do $(EMULATOR) "$$t" || failed=1; done; exit $$failed

list-unit-tests:
	@printf '%s\n' $(unit_tests)

coverage: ## runs the unit tests with gcov: lines and branches by folder, build/coverage/lcov.info, HTML where gcovr is
	@$(MAKE) --no-print-directory VARIANT=coverage unit-build
	@/usr/bin/python3 tools/testrun/coverage.py $(BUILD)

fuzz: fuzz-one ## looks for inputs that break a part of the program: TARGET=text SECONDS=60 (tests/fuzz/README.md)
	@mkdir -p $(BUILD)/fuzz/$(TARGET)
	$(fuzzer) -max_total_time=$(or $(SECONDS),60) -artifact_prefix=$(BUILD)/fuzz/$(TARGET)- $(fuzz_options) \
		$(BUILD)/fuzz/$(TARGET) $(corpus)

fuzz-keep: fuzz-one ## adds to the corpus of TARGET what "make fuzz" has found that it lacks
	@mkdir -p $(corpus).new $(BUILD)/fuzz/$(TARGET) $(corpus)
	$(fuzzer) -set_cover_merge=1 $(fuzz_options) $(corpus).new $(corpus) $(BUILD)/fuzz/$(TARGET)
	rm -rf $(corpus) && mv $(corpus).new $(corpus)

fuzz-build: $(addprefix $(T)/fuzz/,$(fuzz_targets)) ## builds the fuzz targets of VARIANT; all but VARIANT=fuzz replay files

# The fuzzer of one target, whatever CC and VARIANT are.
fuzzer := $(BUILD)/fuzz-clang/tests/fuzz/$(TARGET)
corpus := tests/fuzz/corpus/$(TARGET)
fuzz_options := -timeout=10 -rss_limit_mb=2048 $(if $(wildcard tests/fuzz/$(TARGET).dict),-dict=tests/fuzz/$(TARGET).dict)
.PHONY: fuzz-one
fuzz-one:
	$(if $(filter $(fuzz_targets),$(TARGET)),,$(error TARGET must be one of $(fuzz_targets)))
	@$(MAKE) --no-print-directory VARIANT=fuzz CC=clang $(fuzzer)

asan: ## unit tests under the address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory VARIANT=asan unit

tsan: ## unit tests under the thread sanitizer
	@$(MAKE) --no-print-directory VARIANT=tsan unit

mutants: ## puts seeded faults into a copy of the tree, and sees that a test finds each: NAMES="a b" JOBS=1; or RANDOM=200 SEED=7 (tests/mutants/README.md)
	@$(MAKE) --no-print-directory deps-test
	@/usr/bin/python3 tests/mutants/$(if $(RANDOM),random_faults.py $(RANDOM) --seed $(or $(SEED),1) $(if $(FOLDER),--folder $(FOLDER)),run.py $(NAMES)) $(if $(JOBS),--jobs $(JOBS))

sched: ## lets the engine run under a seeded scheduler: SEED=7, or FIRST=1 COUNT=200 SECONDS=60 of CPU (tests/sched/README.md)
	@$(MAKE) --no-print-directory VARIANT=sched $(BUILD)/sched/sched
	@$(if $(SECONDS),SCHED_SECONDS=$(SECONDS)) $(BUILD)/sched/sched $(if $(SEED),$(SEED),$(or $(FIRST),1) $(or $(COUNT),200))

syntax: $(patsubst %.c,$(O)/%.syntax,$(filter $(or $(UNDER),%),$(all_srcs))) $(patsubst %.cc,$(O)/%.syntax-cc,$(filter $(or $(UNDER),%),$(all_srcs_cxx))) ## has the compiler look at every source, and write nothing: UNDER="tests/% %.cc"

model: $(B)/flashield $(model) ## builds the daemon and the model test's client

stale: $(B)/flashield $(stale) ## builds the daemon and the clients of the never-stale checker

soak: ## explores new seeds of sched, then looks for stale values over restarts and kills, for a long while: SOAK_MINUTES=60 NAMES="kills tags"
	@$(if $(NAMES),:,$(MAKE) --no-print-directory sched FIRST=$$(date +%s) COUNT=1000000 SECONDS=$$(($(or $(SOAK_MINUTES),60) * 15)))
	@$(MAKE) --no-print-directory VARIANT=debug stale
	@/usr/bin/python3 tests/stale/run.py --soak --minutes $(or $(SOAK_MINUTES),60) $(NAMES)

nodes: all $(ketama) ## builds the client of the tests with several nodes

deps: ## installs the Debian packages that the build needs
	@packaging/install-deps.sh build

deps-test: ## installs those of the tests and of packages too
	@packaging/install-deps.sh build package test

compile_commands.json: FORCE ## the commands of every source, for editors and clang tools
	@{ sep='['; for f in $(all_srcs); do \
		printf '%s\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' "$$sep" "$(CURDIR)" \
			"$$f" "$(CC) $(all_cppflags) $(all_cflags)" "$$f"; sep=','; done; \
		for f in $(all_srcs_cxx); do \
		printf ',\n{"directory": "%s", "file": "%s", "command": "%s -c %s"}' "$(CURDIR)" \
			"$$f" "$(CXX) $(all_cppflags) $(all_cxxflags)" "$$f"; done; \
		printf '\n]\n'; } > $@

format: ## applies .clang-format to every source
	find . \( -name '*.c' -o -name '*.h' -o -name '*.cc' \) -not -path './.*' -not -path './$(BUILD)/*' -exec clang-format -i {} +

sample := packaging/samples/flashield.conf

sample-config: $(O)/print-sample ## writes packaging/samples/flashield.conf anew from conf/options.def
	@$(EMULATOR) $< > $(sample).new && mv $(sample).new $(sample)

reference: $(O)/print-reference ## writes the generated parts of packaging/man and packaging/doc anew from the tables
	@/usr/bin/python3 tools/check/reference.py $< write

clean: ## removes what was built
	rm -rf $(BUILD) compile_commands.json

# --- rules ------------------------------------------------------------------------------------

show = $(if $(V),,@printf '  %-4s %s\n' $(1) $(2);)

# Rewritten only when compiler or flags change: everything depends on it.
$(O)/flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(all_cppflags) $(all_cflags) $(all_ldflags) $(CXX) $(all_cxxflags)' > $@.$$$$; \
	if cmp -s $@.$$$$ $@; then rm -f $@.$$$$; else mv -f $@.$$$$ $@; fi

$(O)/tests/unit/%.o: private all_cflags += $(if $(quick),-O0)

# Written beside and moved, so that two builds at a time never see half an object.
$(O)/%.o: %.c $(O)/flags
	$(call show,CC,$<)mkdir -p $(@D) && $(CC) $(all_cppflags) $(all_cflags) -MMD -MP \
		-MF $(@:.o=.d) -MT $@ -c -o $@.$$$$ $< && mv -f $@.$$$$ $@

$(O)/%.o: %.cc $(O)/flags
	$(call show,CXX,$<)mkdir -p $(@D) && $(CXX) $(all_cppflags) $(all_cxxflags) -MMD -MP \
		-MF $(@:.o=.d) -MT $@ -c -o $@.$$$$ $< && mv -f $@.$$$$ $@

# No object is of use where a second compiler only looks for what deserves a warning.
$(O)/%.syntax: %.c $(O)/flags
	$(call show,LOOK,$<)mkdir -p $(@D) && $(CC) $(all_cppflags) $(all_cflags) -fsyntax-only -MMD -MP \
		-MF $@.d -MT $@ $< && touch $@

$(O)/%.syntax-cc: %.cc $(O)/flags
	$(call show,LOOK,$<)mkdir -p $(@D) && $(CXX) $(all_cppflags) $(all_cxxflags) -fsyntax-only -MMD -MP \
		-MF $@.d -MT $@ $< && touch $@

archive = mkdir -p $(@D) && rm -f $@.$$$$ && ar qcs $@.$$$$ $(filter %.o,$^) && mv -f $@.$$$$ $@
link = mkdir -p $(@D) && $(CC) $(all_cflags) $(all_ldflags) -o $@.$$$$ $(filter %.o,$^) \
	$(filter %.a,$^) $(1) && mv -f $@.$$$$ $@

$(lib_engine): $(engine_objs)
	$(call show,AR,$@)$(archive)

# An archive per folder as well: the unit tests of a module link that module and what lies below
# it, so that a forbidden dependency fails to link.
$(O)/lib/%.a: $$(call objects,$$(subst -,/,$$*))
	$(call show,AR,$@)$(archive)

$(O)/lib/all-server.a: $(server_objs)
	$(call show,AR,$@)$(archive)

$(O)/lib/all-tools.a: $(call objects,$(addprefix tools/,common $(filter-out bench inspect record sim top,$(tool_dirs))))
	$(call show,AR,$@)$(archive)

# Rewritten only when commit, compiler or libraries change.
$(O)/build_info.c: FORCE
	@mkdir -p $(@D); tools/build-info.sh $(VARIANT) $(CC) > $@.$$$$; \
	if cmp -s $@.$$$$ $@; then rm -f $@.$$$$; else mv -f $@.$$$$ $@; fi

$(O)/build_info.o: $(O)/build_info.c $(O)/flags
	$(call show,CC,$<)$(CC) $(all_cppflags) $(all_cflags) -c -o $@.$$$$ $< && mv -f $@.$$$$ $@

$(B)/flashield: $(server_objs) $(O)/build_info.o $(lib_engine)
	$(call show,LD,$@)$(call link,$(server_libs) $(engine_libs))

$(B)/flashield-%: $$(call objects,tools/$$* tools/common) $(lib_engine)
	$(call show,LD,$@)$(call link,$(tool_libs) $(tool_libs_$*) $(engine_libs))

# The benchmark is Python, run from its folder, and a program for what must be fast or needs the engine.
$(B)/flashield-bench-worker: $(call objects,tools/bench tools/common) $(lib_engine)
	$(call show,LD,$@)$(call link,$(tool_libs) $(engine_libs))

$(B)/flashield-bench: tools/bench/flashield_bench.py | $(B)/flashield-bench-worker
	$(call show,LN,$@)ln -srfT $< $@

# So is the simulator.
$(B)/flashield-sim-worker: $(call objects,tools/sim tools/common) $(lib_engine)
	$(call show,LD,$@)$(call link,$(tool_libs) $(engine_libs))

$(B)/flashield-sim: tools/sim/flashield_sim.py | $(B)/flashield-sim-worker
	$(call show,LN,$@)ln -srfT $< $@

# A slow drive under an unmodified daemon, by LD_PRELOAD (tools/slowdrive/slowdrive.h).
$(O)/tools/slowdrive/%.o: all_cflags += -fPIC -fvisibility=hidden

$(B)/slowdrive.so: $(call objects,tools/slowdrive)
	$(call show,LD,$@)mkdir -p $(@D) && $(CC) $(all_cflags) -fPIC -shared -Wl,-z,relro,-z,now,-z,defs \
		-o $@.$$$$ $(filter %.o,$^) && mv -f $@.$$$$ $@

$(B)/model_client: $(model_objs) $(call objects,tools/common) $(lib_engine)
	$(call show,LD,$@)$(call link,$(tool_libs) $(engine_libs))

$(stale): $(stale_objs) $(lib_engine)
	$(call show,LD,$@)$(call link,$(engine_libs))

# What the engine calls of libc, and the scheduler answers (tests/sched/wraps.c); and the hash of a key, which tells at what it works.
sched_wraps := pthread_create pthread_join pthread_self pthread_setname_np pthread_once setpriority \
	pthread_mutex_init pthread_mutex_destroy pthread_mutex_lock pthread_mutex_trylock pthread_mutex_unlock \
	pthread_cond_init pthread_cond_destroy pthread_cond_signal pthread_cond_broadcast pthread_cond_wait pthread_cond_timedwait \
	clock_gettime nanosleep usleep sched_yield getrandom eventfd eventfd_read eventfd_write timerfd_create timerfd_settime \
	poll read write pwrite close fsync fdatasync raise abort store_hash

$(O)/tests/sched/%.o: private all_cflags += -fno-sanitize=thread
$(B)/sched: private all_ldflags += -fno-sanitize=thread

$(B)/sched: $(sched_objs) $(O)/build_info.o $(lib_engine)
	$(call show,LD,$@)$(call link,$(patsubst %,-Wl$(comma)--wrap=%,$(sched_wraps)) $(engine_libs))

# A client of several nodes in the hands of libmemcached: no line of ours beside its own.
$(ketama): $(ketama_objs)
	$(call show,LD,$@)$(call link,-lmemcached)

# The generated parts of manual pages and guides: for reference and check.
$(O)/print-reference: $(O)/tools/check/print_reference.o $(addprefix $(O)/lib/,conf.a base-metrics.a base.a)
	$(call show,LD,$@)$(call link,$(engine_libs))

# What "flashield --print-sample-config" prints, without the daemon: for sample-config and check.
$(O)/print-sample: $(O)/tools/check/print_sample.o $(O)/lib/conf.a $(O)/lib/base.a
	$(call show,LD,$@)$(call link,$(engine_libs))

# Where things go, and the packages.
include packaging/install.mk

# Which archives the unit tests of a folder and of the folders in it link, in link order. A module of the engine without a
# line links itself and what lies below it.
below_server/store := $(lib_engine)
below_server := $(O)/lib/all-server.a $(lib_engine)
below_tools := $(O)/lib/all-tools.a $(lib_engine)
below_flashindex/frugal := $(addprefix $(O)/lib/,flashindex-frugal.a conf.a base-metrics.a base.a)
below_base/metrics := $(addprefix $(O)/lib/,base-metrics.a base.a)
below_tools/bench := $(O)/lib/tools-bench.a $(O)/lib/tools-common.a $(lib_engine)
below_tools/record := $(O)/lib/tools-record.a $(O)/lib/tools-common.a $(lib_engine)
below_tools/sim := $(O)/lib/tools-sim.a $(O)/lib/tools-common.a $(lib_engine)
below_tools/top := $(addprefix $(O)/lib/,tools-top.a tools-common.a conf.a base-metrics.a base.a)
# inspect reads the format from its page alone: nothing of the engine is there to be linked.
below_tools/inspect := $(addprefix $(O)/lib/,tools-inspect.a tools-common.a conf.a base.a)
below_engine = $(addprefix $(O)/lib/,$(addsuffix .a,$(1) $(if $(filter-out base conf,$(1)),conf base-metrics) $(filter-out $(1),base)))

# "server/store/dram" gives itself, "server/store" and "server".
folders_up = $(1) $(if $(findstring /,$(1)),$(call folders_up,$(patsubst %/,%,$(dir $(1)))))
unit_folder = $(patsubst %/,%,$(dir $(1)))
unit_libs = $(or $(below_$(firstword $(foreach folder,$(call folders_up,$(1)),$(if $(below_$(folder)),$(folder))))),\
	$(call below_engine,$(firstword $(subst /, ,$(1)))))
# Sources of a test folder that are no test themselves are linked into each of its tests, and into those of its folders; but
# those of server and tools only into their own. Those that test with a device get the one in memory.
unit_helper_folders = $(1) $(foreach folder,$(call folders_up,$(1)),$(if $(findstring /,$(folder)),$(folder))) \
	$(if $(filter segments server/store server/store/%,$(1)),devices)
unit_helpers = $(patsubst %.c,$(O)/%.o,$(filter-out $(unit_srcs),$(foreach folder,$(sort $(call unit_helper_folders,$(1))),\
	$(wildcard tests/unit/$(folder)/*.c))))

# Each says at its end which of its tests have started threads.
comma := ,
$(unit_tests): $(T)/%: $(O)/tests/unit/%.o $(O)/tests/unit/threads.o $$(call unit_helpers,$$(call unit_folder,$$*)) \
		$$(call unit_libs,$$(call unit_folder,$$*))
	$(call show,LD,$@)$(call link,-Wl$(comma)--wrap=pthread_create$(comma)--wrap=_cmocka_run_group_tests -lcmocka $(tool_libs) $(tool_libs_$(notdir $(call unit_folder,$*))) $(server_libs) $(engine_libs))

# A fuzz target is a fuzzer with VARIANT=fuzz, else a program that runs what is in files.
fuzz_libs = $(if $(filter inspect,$(1)),$(O)/tests/unit/tools/inspect/image.o $(below_tools/inspect),\
	$(if $(filter state items region journal flash,$(1)),$(patsubst %.c,$(O)/%.o,$(wildcard tests/unit/devices/*.c))) $(below_server))
fuzz_main := $(if $(filter fuzz,$(VARIANT)),,$(O)/tests/fuzz/replay.o)
fuzz_flags := $(if $(fuzz_main),,-fsanitize=fuzzer) -Wl,--wrap=clk_wall_seconds,--wrap=rng_secret,--wrap=io_setup,--wrap=io_destroy,--wrap=unlink
# Of targets with a service: whose slots are cleared.
fuzz_flags_clear := -Wl,--wrap=fidx_clear

$(O)/lib/fuzz.a: $(patsubst %.c,$(O)/%.o,$(fuzz_helpers))
	$(call show,AR,$@)$(archive)

$(addprefix $(T)/fuzz/,$(fuzz_targets)): $(T)/fuzz/%: $(O)/tests/fuzz/fuzz_%.o $(fuzz_main) $(O)/lib/fuzz.a \
		$$(call fuzz_libs,$$*)
	$(call show,LD,$@)$(call link,$(fuzz_flags) $(if $(filter text binary udp,$*),$(fuzz_flags_clear)) -lcmocka $(tool_libs) $(server_libs) $(engine_libs))

-include $(patsubst %.c,$(O)/%.d,$(all_srcs) $(wildcard tools/check/*.c)) $(patsubst %.cc,$(O)/%.d,$(all_srcs_cxx)) \
	$(patsubst %.c,$(O)/%.syntax.d,$(all_srcs)) $(patsubst %.cc,$(O)/%.syntax-cc.d,$(all_srcs_cxx))

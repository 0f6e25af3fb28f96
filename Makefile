# openetl: one readable Makefile.
#   make build     the binary at build/openetl (installs what is missing, says what)
#   make demo      a first sync, SQLite to DuckDB, from nothing
#   make test      everything: unit, black box, crash matrix (installs PostgreSQL, pytest …)
#   make asan      the unit and black-box suites under AddressSanitizer and UBSan
#   make tsan      reads in parts and loads into DuckDB under ThreadSanitizer; about five minutes
#   make fuzz      every fuzz target for FUZZ_SECONDS (60)
#   make fmt lint  formatting; warnings as errors, layer rule, banned words
#   make bench     openetl beside other tools, checked: SCALE=1 ROUNDS=3 JOBS= TABLES= CONTENDERS= BENCH=(options);
#                  writes bench/results/DATE.json and docs/performance.md; an hour or so, SCALE=0.05 for a short run
#   make profile   where the time goes, by perf, into docs/internals/speed.md: LABEL=after TABLES= PROFILE=(options)
#   make load      updates, ties and late commits at 200 and 2,000 rows/s while syncs run and are killed, then a comparison row
#                  by row: SECONDS=300 a rate (shorter ones are not written to docs/load.md)
#   make mutants   takes each safeguard out in turn; the tests named for it must fail: MUTANTS=(names)
BUILD  ?= build
DEPS   := build/deps
CC     ?= gcc
PREFIX ?= /usr/local
VERSION := 0.1.0

PKGS   := libpq sqlite3 yaml-0.1 jansson libcurl
CFLAGS ?= -O2 -g
WARN   := -Wall -Wextra -Wshadow -Wconversion -Wformat=2 -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wundef \
          -Wswitch-enum -Wpointer-arith -Wcast-qual -Wwrite-strings
WERROR ?= -Werror
CPPFLAGS += -Isrc -isystem $(DEPS)/include -D_GNU_SOURCE -DOPENETL_VERSION='"$(VERSION)"' -include base/banned.h
ALL_CFLAGS = -std=c17 -fvisibility=hidden -fno-strict-aliasing -pthread $(WARN) $(WERROR) $(CFLAGS) $(SANITIZE) \
             $(shell pkg-config --cflags $(PKGS) 2>/dev/null | sed 's/-I/-isystem /g')
LDLIBS = $(shell pkg-config --libs $(PKGS) 2>/dev/null) -L$(DEPS)/lib -lduckdb -pthread -lm
# The library is looked for beside the binary (an installed one) and in build/deps (this tree).
RPATH  = -Wl,-rpath,'$$ORIGIN/../lib/openetl:$$ORIGIN/deps/lib:$(abspath $(DEPS))/lib'

SRC  := $(sort $(wildcard src/*/*.c src/connectors/*/*.c))
OBJ  := $(SRC:src/%.c=$(BUILD)/obj/%.o)
LIB  := $(BUILD)/libopenetl.a
UNIT := $(sort $(wildcard tests/unit/test_*.c))
UNIT_BIN := $(UNIT:tests/unit/%.c=$(BUILD)/unit/%)
FUZZ := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BIN := $(FUZZ:tests/fuzz/%.c=$(BUILD)/fuzz/%)
FUZZ_SECONDS ?= 60

.PHONY: all build deps demo test unit test-deps pytest crash asan tsan fuzz coverage bench load mutants profile fmt lint install clean
all: build

build: deps
	@$(MAKE) --no-print-directory -j$(shell nproc) $(BUILD)/openetl

deps:
	@tools/install-deps.sh build
	@tools/fetch-duckdb.sh $(DEPS)

$(BUILD)/openetl: $(BUILD)/obj/main.o $(LIB)
	@echo "  LINK $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $(BUILD)/obj/main.o $(LIB) $(LDLIBS) $(RPATH)

$(LIB): $(OBJ)
	@rm -f $@ && ar rcs $@ $^

$(BUILD)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/unit/%: tests/unit/%.c $(LIB)
	@mkdir -p $(@D)
	@echo "  UNIT $<"
	@$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -MMD -MP -o $@ $< $(LIB) -lcmocka $(LDLIBS) $(RPATH)

$(BUILD)/fuzz/%: tests/fuzz/%.c $(LIB)
	@mkdir -p $(@D)
	@echo "  FUZZ $<"
	@$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -fsanitize=fuzzer -o $@ $< $(LIB) $(LDLIBS) $(RPATH)

unit: $(UNIT_BIN)
	@tools/run-unit.sh $(UNIT_BIN)

demo:
	@tools/install-deps.sh demo
	@tools/fetch-duckdb.sh $(DEPS)
	@$(MAKE) --no-print-directory -j$(shell nproc) $(BUILD)/openetl $(BUILD)/duckdb-query
	@tools/demo.sh $(BUILD)/openetl $(BUILD)/duckdb-query

$(BUILD)/duckdb-query: tools/duckdb_query.c
	@mkdir -p $(@D)
	@$(CC) -std=c17 -O1 -isystem $(DEPS)/include -o $@ $< -L$(DEPS)/lib -lduckdb $(RPATH)

test-deps:
	@tools/install-deps.sh test
	@tools/fetch-duckdb.sh $(DEPS)
	@tools/make-venv.sh build/venv

test: test-deps
	@$(MAKE) --no-print-directory -j$(shell nproc) $(BUILD)/openetl $(UNIT_BIN)
	@tools/test.sh $(BUILD)

pytest: test-deps build
	@OPENETL=$(abspath $(BUILD))/openetl build/venv/bin/python -m pytest $(PYTEST) tests

asan: test-deps
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build/asan CFLAGS='-O1 -g' \
	  SANITIZE='-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer' \
	  WERROR= asan-run
.PHONY: asan-run
asan-run: $(BUILD)/openetl $(UNIT_BIN)
	@ASAN_OPTIONS=detect_leaks=1 LSAN_OPTIONS=suppressions=$(abspath tests/support/lsan.supp) tools/test.sh $(BUILD) asan

tsan: test-deps
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build/tsan CFLAGS='-O1 -g' \
	  SANITIZE='-fsanitize=thread -fno-omit-frame-pointer' WERROR= tsan-run
.PHONY: tsan-run
tsan-run: $(BUILD)/openetl $(BUILD)/unit/test_engine
	@tools/tsan.sh $(BUILD)

fuzz: test-deps
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build/fuzzing CC=clang CFLAGS='-O1 -g' WERROR= \
	  SANITIZE='-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all' fuzz-run
.PHONY: fuzz-run
fuzz-run: $(FUZZ_BIN)
	@tools/run-fuzz.sh $(FUZZ_SECONDS) $(FUZZ_BIN)

coverage: test-deps
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build/cov CFLAGS='-O0 -g' SANITIZE='--coverage -fprofile-abs-path' coverage-run
.PHONY: coverage-run
coverage-run: $(BUILD)/openetl $(UNIT_BIN)
	@tools/coverage.sh $(BUILD)

SCALE   ?= 1
ROUNDS  ?= 3
FLOORS  := build/bench/floor_read build/bench/floor_pipe build/bench/floor_append
bench: deps
	@tools/install-deps.sh test
	@tools/make-bench-venv.sh build/bench-venv
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build/bench build/bench/openetl $(FLOORS)
	@build/bench-venv/bench/bin/python tests/bench/bench.py --scale $(SCALE) --rounds $(ROUNDS) \
	  --jobs "$(JOBS)" --tables "$(TABLES)" --contenders "$(CONTENDERS)" $(BENCH)

SECONDS ?= 300
load: test-deps build
	@OPENETL=$(abspath $(BUILD))/openetl build/venv/bin/python tests/load/load.py --seconds $(SECONDS) $(LOAD)

mutants: test-deps build
	@tools/mutants.sh $(MUTANTS)

LABEL ?= after
profile: deps
	@tools/install-deps.sh test
	@tools/make-bench-venv.sh build/bench-venv
	@command -v perf >/dev/null || { echo "profile: perf is not installed (Debian: linux-perf)"; exit 1; }
	@$(MAKE) --no-print-directory -j$(shell nproc) BUILD=build/bench build/bench/openetl
	@build/bench-venv/bench/bin/python tests/bench/profile.py --label $(LABEL) $(if $(TABLES),--tables "$(TABLES)") $(PROFILE)

build/bench/floor_%: tests/bench/floor_%.c
	@mkdir -p $(@D)
	@echo "  CC   $<"
	@$(CC) -D_GNU_SOURCE -isystem $(DEPS)/include $(ALL_CFLAGS) -o $@ $< $(LDLIBS) -Wl,-rpath,$(abspath $(DEPS))/lib

FMT_FILES = $(shell git ls-files -co --exclude-standard 'src/*.c' 'src/*.h' 'tests/*.c' 'tests/*.h')
fmt:
	@clang-format -i $(FMT_FILES)

lint: test-deps
	@clang-format --dry-run -Werror $(FMT_FILES)
	@tools/check-layers.py src

install: build
	install -D -m 755 $(BUILD)/openetl $(DESTDIR)$(PREFIX)/bin/openetl
	install -D -m 755 $(DEPS)/lib/libduckdb.so $(DESTDIR)$(PREFIX)/lib/openetl/libduckdb.so
	install -D -m 644 docs/openetl.1 $(DESTDIR)$(PREFIX)/share/man/man1/openetl.1

clean:
	rm -rf $(BUILD)/obj $(BUILD)/unit $(BUILD)/fuzz $(BUILD)/openetl $(LIB)

-include $(OBJ:.o=.d) $(BUILD)/obj/main.d

# gemmepi's only build tool. Nothing here is needed to use gemmepi.h: copy the header and compile.
# Outputs go to build/. The tests and the demo need a C compiler and make; whatever else is missing is skipped, with
# the reason. CC, CXX, CFLAGS, PREFIX and DESTDIR may be set.

ifeq ($(origin CC),default)
CC := $(if $(shell command -v cc 2>/dev/null),cc,gcc)
endif
ifeq ($(origin CXX),default)
CXX := g++
endif
CFLAGS ?= -O2
# The repository's address: a placeholder until there is one. make gen writes it to README.md and SECURITY.md; CMake and pkg-config read it.
URL := https://example.invalid/gemmepi
PREFIX ?= /usr/local
LIBS := -lm -ldl -lpthread

WARNINGS := -pedantic -Wall -Wextra -Wno-unused-function
PARTS := $(wildcard src/*/*.h src/*/*/*.h)
FORMATTED := $(filter-out src/kernels/%,$(wildcard src/*.[ch] src/*/*.h src/*/*/*.h)) \
             $(wildcard tests/*.[ch] tests/*/*.[ch] tests/*/*.cpp bench/*.[ch] examples/*.c examples/ranks.h examples/parallel_report.h examples/picture.h examples/*.cpp)
UNIT_TESTS := $(patsubst %.c,build/%,$(wildcard tests/unit/*.c))
WHOLE_TESTS := $(patsubst %.c,build/%,$(wildcard tests/products/*.c tests/elementwise/*.c tests/linear/*.c tests/network/*.c tests/gpu/*.c))
SHARED := build/libgemmepi.$(if $(filter Darwin,$(shell uname -s)),dylib,so)
VERSION := $(shell sed -n 's/.*GEMMEPI_VERSION_STRING "\(.*\)"/\1/p' gemmepi.h)

.DELETE_ON_ERROR:
.PHONY: help demo quick host test test-all test-programs coverage mutants record report emulate gen check-gen parts format check kernels table fuzz \
        fuzz-descs fuzz-formulas fuzz-files bench shared install uninstall clean

help:
	@echo 'make demo      trains a small network on real data, on the GPU if there is one, else on the host'
	@echo 'make test      some minutes of tests, with a share of the grids  make fuzz      random formulas and products'
	@echo 'make fuzz-descs, fuzz-formulas, fuzz-files    libFuzzer with sanitizers (clang), FUZZ_SECONDS=300 each'
	@echo 'make test-all  every test that this machine can run, and the documents, with every compiler; PART=2/5 runs the second'
	@echo '               fifth, REST=1 what make test leaves out. JOBS=N runs N at a time, V=1 shows what passed'
	@echo 'make coverage  which lines of src/ the tests of the host run, by file, and functions that none runs'
	@echo 'make mutants   whether the tests notice the small changes of src/ in tests/mutants.txt; MUTANTS holds options:'
	@echo '               --share N (one in N), --file REGEX, --line N, --jobs N'
	@echo 'make record    records the choice for some hundred problems, after a change that is meant to change it'
	@echo 'make emulate   tests of the kernels without a GPU, their PTX run on the host: a sample, or EMULATE="ARCH TEST ARGUMENTS"'
	@echo 'make kernels   compiles every kernel family for every architecture that the installed NVRTC knows; KERNELS holds options:'
	@echo '               --only FAMILY, --share N (one in N), --turn N (which), --all (every specialisation for each of them: half an hour).'
	@echo '               The family drawn is what 300 random problems run on seven chips; its machine code is read with nvdisasm'
	@echo 'make check     every static check                            make parts     each part compiles alone'
	@echo "make bench     measures on the GPU; BENCH holds options: --only, --csv, '--random N --seed S' (random products),"
	@echo '               --famous (products of well-known models), --problem (your own), --ampere (without what only Hopper has),'
	@echo '               --svg, --help'
	@echo 'make report    ten minutes of tests, races and tuning on your GPU, as one text file that can be sent in'
	@echo 'make table     runs every type with every epilogue, checks it and shows the routes on this machine;'
	@echo '               TABLE holds options: --host, --without-fused'
	@echo 'make gen       writes gemmepi.h, kernels_src.h, docs/api.md and api.json, and URL into README.md and SECURITY.md'
	@echo 'make check-gen fails if they are stale'
	@echo 'make shared    build/libgemmepi.so and, with mingw, build/gemmepi.dll, for programs that do not compile the header'
	@echo 'make format    clang-format over the sources                 make clean     removes build/'
	@echo 'make install   header and pkg-config file, PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)'
	@echo 'make uninstall removes them'

# >>the main job

demo: build/digits
	build/digits --svg build/loss.svg examples/data/digits.csv

EXAMPLES := $(patsubst %,build/%,cross_entropy digits fp8 gates mlp moe norm_layer parallel policy quantise ship siren texture)
build/parallel: examples/ranks.h examples/parallel_report.h
build/siren build/texture: examples/picture.h
# They have the interface alone, and link the implementation.
INTERFACE := build/tests/interface/gemmepi.h
$(INTERFACE): gemmepi.h
	@mkdir -p $(@D)
	@sed '/^#if defined(GEMMEPI_IMPLEMENTATION)/,$$d' $< >$@

$(EXAMPLES): build/%: examples/%.c build/tests/gemmepi.o $(INTERFACE)
	$(CC) -std=c99 $(CFLAGS) -I$(dir $(INTERFACE)) -I. $< build/tests/gemmepi.o -o $@ $(LIBS)

# >>tests

# A program that does not compile is a failed test, which tests/run.sh counts; the others run all the same.
JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
AT_ONCE = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j $(JOBS))
# run_tests(PROGRAMS, WHAT TO MAKE, PROGRAMS TO BEGIN WITH)
define run_tests
	@CC='$(CC)' JOBS=$(JOBS) PART=$(PART) REST=$(REST) sh tests/run.sh --say $@
	$(if $(3),@+$(MAKE) --no-print-directory --keep-going $(AT_ONCE) $(3) || true)
	@+$(if $(3),JOBS=$(JOBS) sh tests/run.sh --first $@ $(3) & )$(MAKE) --no-print-directory --keep-going $(AT_ONCE) $(2) || true; wait
	@CC='$(CC)' CXX='$(CXX)' JOBS=$(JOBS) PART=$(PART) REST=$(REST) sh tests/run.sh $@ $(1)
endef
test:
	$(call run_tests,$(UNIT_TESTS) $(WHOLE_TESTS) build/tests/kernels,test-programs,$(FIRST))
test-all:
	$(call run_tests,$(UNIT_TESTS) $(WHOLE_TESTS) build/tests/kernels,test-programs)

# Not quick: they take seconds each to compile, or to run.
SLOW := $(addprefix build/tests/unit/,bench_random bundle formula_nvrtc host_memory invariant library_calls without_fp8 without_fused without_sm80 without_sm90)
QUICK := $(filter-out $(SLOW),$(UNIT_TESTS))
# They compile within seconds.
FIRST := $(addprefix build/tests/unit/,chip compile convert disk_cache hash libraries map overlap sources text)
HOST := $(UNIT_TESTS) $(filter-out build/tests/gpu/%,$(WHOLE_TESTS))
quick:
	$(call run_tests,$(QUICK),$(QUICK))
host:
	$(call run_tests,$(HOST),$(HOST))

# What takes longest to compile goes first.
test-programs: build/tests/gemmepi.o build/tests/linked.o $(UNIT_TESTS) $(WHOLE_TESTS) $(EXAMPLES) build/fake_nccl/libnccl.so.2 build/tests/table build/tests/kernels $(SHARED)

build/fake_nccl/libnccl.so.2: tests/fake_nccl.c
	@mkdir -p $(@D)
	@echo 'CC   $@'
	@$(CC) -std=c99 $(WARNINGS) $(CFLAGS) -shared -fPIC $< -o $@

# What changes inside functions of src/ is compiled once, and programs are linked again. USERS have the interface and link gemmepi.o,
# which is gemmepi.h as the shared library has it. INSIDE looks into the implementation: it has declarations of all of it, which linked.awk makes of src/, and links
# linked.o. ALONE includes parts of src/ themselves: few of them, or with macros that change them.
LINKED := build/tests/linked
COPIED := $(PARTS) src/gemmepi.in.h
DECLARED := $(COPIED:src/%=$(LINKED)/declared/%)
CHANGED := $(addprefix build/tests/unit/,without_fp8 without_fused without_sm80 without_sm90)
ALONE := $(CHANGED) $(addprefix build/tests/unit/,chip compile convert disk_cache hash libraries map overlap sources text)
INSIDE := $(filter-out $(ALONE),$(UNIT_TESTS)) build/tests/kernels $(addprefix build/tests/gpu/,casts formula_inside formula_pass fp8_shapes fused grouped_shapes \
          invariant lt_checked lt_known operands refusal scaled_formats weights weights_made)
USERS := $(filter-out $(INSIDE),$(WHOLE_TESTS)) build/tests/table

$(ALONE:%=%.o): INCLUDES := -Isrc -Itests
$(INSIDE:%=%.o): INCLUDES := -I$(LINKED)/declared -Isrc -I. -Itests
$(filter build/tests/gpu/%,$(INSIDE:%=%.o)): INCLUDES += -DGEMMEPI_IMPLEMENTATION=
$(USERS:%=%.o): INCLUDES := -I$(LINKED)/declared -I. -Itests
# On the fake GPU nothing takes time but the library, and in `make kernels` nothing but NVRTC.
$(filter build/tests/unit/%,$(INSIDE:%=%.o)) $(CHANGED:%=%.o) build/tests/kernels.o: CFLAGS += -O0
build/tests/unit/formula_derive.o: CFLAGS += -O1
$(filter build/tests/gpu/%,$(INSIDE:%=%.o)) build/tests/linked.o: CFLAGS += -O1
$(INSIDE): build/tests/linked.o
# What these have in place of the system's function.
build/tests/unit/bundle: LIBS += -Wl,--wrap=getrlimit
build/tests/unit/contexts: LIBS += -Wl,--wrap=pthread_atfork
$(USERS): build/tests/gemmepi.o

$(LINKED)/made: $(COPIED) tests/linked.awk
	@mkdir -p $(sort $(dir $(DECLARED) $(DECLARED:$(LINKED)/declared/%=$(LINKED)/defined/%)))
	@awk -v out=$(LINKED) -f tests/linked.awk $(COPIED)
	@[ -f $(LINKED)/declared/gemmepi.h ] || echo '#include "gemmepi.in.h"' >$(LINKED)/declared/gemmepi.h
	@[ -f $(LINKED)/kernels_src.h ] || echo '#include "../../../kernels_src.h"' >$(LINKED)/kernels_src.h
	@touch $@

# A recipe without commands: make looks again whether the copy is another.
$(DECLARED): $(LINKED)/made ;

build/tests/linked.o: $(LINKED)/made kernels_src.h Makefile
	@echo 'CC   $@'
	@echo '#include "gemmepi.in.h"' | $(CC) -std=c99 $(WARNINGS) $(CFLAGS) -I$(LINKED)/defined -DGEMMEPI_IMPLEMENTATION= -x c -c - -o $@

build/tests/gemmepi.o: src/shared.c gemmepi.h Makefile
	@mkdir -p $(@D)
	@echo 'CC   $@'
	@$(CC) -std=c99 $(WARNINGS) $(CFLAGS) -fPIC -fvisibility=hidden -I. -c $< -o $@

PROGRAMS := $(ALONE) $(INSIDE) $(USERS)
$(PROGRAMS:%=%.o): build/tests/%.o: tests/%.c Makefile | $(LINKED)/made
	@mkdir -p $(@D)
	@echo 'CC   $@'
	@$(CC) -std=c99 $(WARNINGS) $(CFLAGS) $(INCLUDES) -MMD -MP -MF $@.d -c $< -o $@

$(PROGRAMS): %: %.o
	@rm -f $@
	@$(CC) $(CFLAGS) $^ -o $@ $(LIBS)

-include $(PROGRAMS:%=%.o.d)

emulate: $(WHOLE_TESTS) build/parallel build/fake_nccl/libnccl.so.2
	@CXX='$(CXX)' sh tests/emulator/run.sh $(EMULATE)

# the routes on this machine; fails where a cell is wrong, or refused for no good reason
table: build/tests/table
	@$< $(TABLE)

COUNT ?= 20000
SEED ?= 1
fuzz: build/tests/products/fuzz build/tests/unit/formula_fuzz
	build/tests/unit/formula_fuzz $(COUNT) $(SEED)
	build/tests/products/fuzz $(COUNT) $(SEED)

# libFuzzer, which needs clang: descs, texts of formulas, bundles and answers, for so many seconds each
FUZZ_SECONDS ?= 300
fuzz-descs fuzz-formulas fuzz-files: fuzz-%:
	sh tests/fuzz.sh $(if $(filter descs,$*),planning_fuzz,$(if $(filter files,$*),files_fuzz,formula_fuzz)) $(FUZZ_SECONDS)

coverage:
	@CC='$(CC)' JOBS=$(JOBS) sh tests/coverage.sh

mutants:
	@CC='$(CC)' CXX='$(CXX)' python3 tests/mutants.py $(if $(filter command%,$(origin JOBS)),--jobs $(JOBS)) $(MUTANTS)

record: build/tests/unit/recorded
	$< --write

# 77: there is no GPU to measure, and the program has said so
bench: build/bench$(if $(filter --ampere,$(BENCH)),_ampere)
	$< $(BENCH) || [ $$? -eq 77 ]

build/bench_ampere: LEFT_OUT := -DGEMMEPI_NO_SM90
build/bench build/bench_ampere: $(wildcard bench/*.[ch]) gemmepi.h
	@mkdir -p $(@D)
	$(CC) -std=c99 $(CFLAGS) $(LEFT_OUT) -I. -DGEMMEPI_IMPLEMENTATION= bench/main.c -o $@ $(LIBS)

# For volunteers, whose card may be one that nobody here has: REPORT_SECONDS=600 of tests, races and tuning, as build/report.txt.
REPORTED := $(addprefix build/tests/,gpu/graph gpu/fused gpu/fp8_shapes gpu/scaled_formats gpu/weights gpu/casts network/grid products/grid products/grid_gradients products/formula \
            products/found_scales products/fuzz linear/grid linear/chain elementwise/grid)
report: build/bench $(REPORTED)
	@sh tests/report.sh build || [ $$? -eq 77 ]

# 77: there is no NVRTC, and the program has said so
kernels: build/tests/kernels
	@sh tests/kernels.sh $< $(if $(filter command%,$(origin JOBS)),--jobs $(JOBS)) $(KERNELS) build/kernels || [ $$? -eq 77 ]

# >>generated files and static checks

gen:
	python3 src/embed.py
	python3 src/api_docs.py
	python3 src/api_json.py
	@for page in README.md SECURITY.md; do \
	    sed 's|^\[repository\]: .*|[repository]: $(URL)|' $$page >$$page.new && \
	    if cmp -s $$page $$page.new; then rm $$page.new; else mv $$page.new $$page; fi; done

check-gen:
	python3 src/embed.py --check
	python3 src/api_docs.py --check
	python3 src/api_json.py --check

parts:
	@CC='$(CC)' CXX='$(CXX)' sh tests/compile/parts.sh $(PARTS)

format:
	clang-format -i $(FORMATTED)

check:
	@CC='$(CC)' CXX='$(CXX)' JOBS=$(JOBS) sh tests/compile/check.sh $(FORMATTED)

# >>shared libraries, for programs that do not compile the header

MINGW := x86_64-w64-mingw32-gcc

shared: $(SHARED)
	@command -v $(MINGW) >/dev/null 2>&1 || echo 'gemmepi.dll is not built: there is no $(MINGW)'
	@! command -v $(MINGW) >/dev/null 2>&1 || $(MAKE) --no-print-directory build/gemmepi.dll

$(SHARED): build/tests/gemmepi.o
	$(CC) $(CFLAGS) -shared $< -o $@ $(LIBS)

build/gemmepi.dll: src/shared.c gemmepi.h
	@mkdir -p $(@D)
	$(MINGW) -std=c99 $(CFLAGS) -shared -static -I. $< -o $@ -Wl,--out-implib,build/libgemmepi.dll.a -lpthread

# >>installing

# gemmepi.pc names absolute folders, whatever PREFIX is
PREFIX_THERE = $(abspath $(PREFIX))
HEADER_THERE = $(DESTDIR)$(PREFIX_THERE)/include/gemmepi.h
PC_THERE = $(DESTDIR)$(PREFIX_THERE)/lib/pkgconfig/gemmepi.pc

install:
	mkdir -p '$(dir $(HEADER_THERE))' '$(dir $(PC_THERE))'
	cp gemmepi.h '$(HEADER_THERE)'
	printf '%s\n' 'prefix=$(PREFIX_THERE)' 'includedir=$${prefix}/include' '' 'Name: gemmepi' \
	    'Description: matrix products with their epilogue in one pass, on NVIDIA GPUs and on the host' \
	    'Version: $(VERSION)' 'URL: $(URL)' 'Cflags: -I$${includedir}' 'Libs: $(LIBS)' \
	    > '$(PC_THERE)'
	chmod 644 '$(HEADER_THERE)' '$(PC_THERE)'

uninstall:
	rm -f '$(HEADER_THERE)' '$(PC_THERE)'

clean:
	rm -rf build

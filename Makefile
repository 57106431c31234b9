# Every command prepares .venv by itself; nothing else has to be installed first
# but Python 3.11 or newer and make.   `make help` lists the commands.

PYTHON3    ?= python3
BOOK_SCALE ?= smoke
# BOOK_SCALE is the size at which notebooks run, for `make book` and the tests alike:
#   smoke  seconds a notebook: proves that everything runs, in 5 to 15 minutes a command on two cores
#   cpu    up to 3 minutes a notebook, 12 for the training run: what the published site shows (make book BOOK_SCALE=cpu)
#   full   the real run, on a GPU
export BOOK_SCALE
export TOKENIZERS_PARALLELISM = false

BIN       = .venv/bin
READY     = .venv/.ready
GRADE     = .venv-grade/bin/python
SITE      = _build/html/index.html
# Side by side: as many as there are cores, two to four.
WORKERS  ?= $(shell n=$$(env -u OMP_NUM_THREADS nproc 2>/dev/null || echo 2); [ $$n -gt 4 ] && n=4; [ $$n -lt 2 ] && n=2; echo $$n)
PYTEST    = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# A full machine can make a browser late. What was waited for in vain is waited for once more, and listed.
AGAIN     = --reruns 1 --only-rerun 'waited \d+ s for' --only-rerun TimeoutException --only-rerun ReadTimeout

# One thread each where processes run side by side; `make train` may take them all.
book page test test-exercises test-book check weekly-tests weekly-labs weekly-site test-site labs grade marks gradescope copies test-labs bench seeds ablations ladder claims: export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL = help
.PHONY: help book page test test-exercises test-book check weekly weekly-tests weekly-labs weekly-site test-site lighthouse serve sync printed labs grade marks gradescope copies test-labs bench train seeds ablations ladder record race \
        gpu gpu-home repository epub pdf offline release cards questions slides exams clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

# $(call prepare,folder,requirements): an environment with the library installed
define prepare
	@$(PYTHON3) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; $(PYTHON3) is `$(PYTHON3) --version`." \
	         "Name another with PYTHON3=..."; exit 1; }
	@# One that has no pip was left half made: by Ctrl-C, or where Python lacks its venv package.
	@$(1)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON3) -m venv --clear $(1) || \
	  { rm -rf $(1); echo "$(PYTHON3) makes no environments here." \
	         "On Debian and Ubuntu: apt install python3-venv"; exit 1; }
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check -r $(2)
	$(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@
endef

$(READY): requirements.txt pyproject.toml
	$(call prepare,.venv,requirements.txt)

.venv-grade/.ready: labs/requirements.txt pyproject.toml
	$(call prepare,.venv-grade,labs/requirements.txt)

book: $(READY)  ## execute the notebooks that have changed and build the site, strictly
	$(BIN)/python -m tools.build --jobs=$(WORKERS)
	@echo
	@echo "The book is built. Open $(CURDIR)/$(SITE) or run: make serve"

page: $(READY)  ## the same for one page, in seconds: make page PAGE=03
	@test -n "$(PAGE)" || { echo "Name the page, or how it begins: make page PAGE=03"; exit 2; }
	@$(BIN)/python -m tools.build --page $(PAGE)

test: $(READY)  ## lint, and the tests of the library and of the recorded results
	$(BIN)/ruff check .
	$(PYTEST) -m 'not weekly' --ignore-glob='tests/*/*' tests

test-exercises: $(READY)  ## the tests of what judges a reader's code
	$(PYTEST) -m 'not weekly' tests/exercises

test-book: $(READY)  ## the tests of pages, slides and notebooks; those that `make book` has not run, run as in Colab
	$(PYTEST) -m 'not weekly' tests/book

check: $(READY)  ## lint and the quick tests of all three, up to eight cases of each, in about a minute on two cores
	$(BIN)/ruff check .
	$(PYTEST) -q --quick --cases 8 -m 'not slow and not weekly' --timeout=60 --ignore=tests/browser tests

weekly: weekly-tests weekly-labs weekly-site  ## the tests that take minutes each; a smaller one of each kind runs each time

weekly-tests: $(READY)
	$(PYTEST) -m weekly --ignore=tests/browser tests
	$(PYTEST) -m 'not weekly' -k as_in_colab tests/book/test_colab.py

weekly-labs: .venv-grade/.ready
	$(GRADE) -m pytest -m weekly $(if $(LAB),-k $(LAB)) labs/tests

test-site: $(READY)  ## build the site if it is missing, then test in headless Chromium every page and live figure
	@test -f $(SITE) || $(MAKE) book
	$(PYTEST) $(AGAIN) -m 'not weekly' tests/browser

weekly-site: $(READY)
	@test -f $(SITE) || $(MAKE) book
	$(PYTEST) $(AGAIN) -m weekly tests/browser

lighthouse: $(READY)  ## how fast pages show on a phone; needs npx, Chromium and an idle machine
	@test -f $(SITE) || $(MAKE) book
	$(BIN)/python -m benchmarks.lighthouse

epub: $(READY)  ## the executed book as an EPUB, _build/attention-step-by-step.epub
	@test -f $(SITE) || $(MAKE) book
	$(BIN)/python -m tools.offline epub

pdf: $(READY)  ## the executed book as one PDF with bookmarks; needs Chromium
	@test -f $(SITE) || $(MAKE) book
	$(BIN)/python -m tools.offline pdf

offline: $(READY)  ## the built site as a zip that works from the disk
	@test -f $(SITE) || $(MAKE) book
	$(BIN)/python -m tools.offline site

release: $(READY)  ## what a release carries, in _build/release; TAG=v1.0.0 must be the version
	$(BIN)/python -m tools.release $(TAG)
	@test -f $(SITE) || $(MAKE) book
	$(MAKE) pdf offline cards
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir _build/release .
	cp $(addprefix _build/attention-step-by-step.,epub pdf zip apkg) _build/release

cards: $(READY)  ## glossary, notation and shapes as cards for Anki, _build/attention-step-by-step.apkg
	$(BIN)/python -m tools.cards

questions: $(READY)  ## the question bank for Canvas (QTI), Moodle (XML, GIFT) and Anki, in _build/course
	$(BIN)/python -m course.export

slides: $(READY)  ## a deck for each session, in _build/course/slides: make slides SESSION=3 ARGS=--pdf
	$(BIN)/python -m course.slides $(SESSION) $(ARGS)

exams: $(READY)  ## two written exams with marking schemes and a list for an oral one, in _build/course; PDF through Chromium
	$(BIN)/python -m course.exams

serve: $(READY)  ## show the built site at http://127.0.0.1:8000
	@test -f $(SITE) || $(MAKE) book
	$(BIN)/python -m http.server 8000 --bind 127.0.0.1 --directory _build/html

sync: $(READY)  ## write setup cells and library code into the notebooks, strip outputs
	$(BIN)/python -m tools.sync

printed: $(READY)  ## how much of the library the chapters print, and what they leave out
	$(BIN)/python -m tools.printed

labs: .venv-grade/.ready  ## the students' labs from the masters; fails if one was stale. Variants: make labs SEED=word [SHEET=moodle.csv] [OUT=folder]
	$(GRADE) -m labs.grader.masters $(if $(SEED),--seed "$(SEED)" --out "$(or $(OUT),variants)" $(if $(SHEET),--sheet "$(SHEET)")) $(ARGS)

grade: .venv-grade/.ready  ## grade a folder of notebooks: make grade SUBMISSIONS=folder [OUT=folder] [LAB=lab2] [SHEET=moodle.csv] [SEED=word [EACH=1]] [JOBS=2]
	@test -n "$(SUBMISSIONS)" || { echo "Name the folder: make grade SUBMISSIONS=folder"; exit 2; }
	@$(GRADE) -m labs.grader "$(SUBMISSIONS)" --out "$(or $(OUT),graded)" $(if $(JOBS),--jobs $(JOBS)) \
		$(if $(LAB),--lab $(LAB)) $(if $(SHEET),--sheet $(SHEET)) \
		$(if $(SEED),--seed "$(SEED)" $(if $(EACH),--each)) $(ARGS)

marks: .venv-grade/.ready  ## after marking by hand: points and comments into marks and feedback [OUT=folder]
	@$(GRADE) -m labs.grader --out "$(or $(OUT),graded)" $(if $(MARKS),--marks $(MARKS)) \
		$(if $(LAB),--lab $(LAB)) $(if $(SHEET),--sheet $(SHEET)) $(ARGS)

gradescope: .venv-grade/.ready  ## an autograder for Gradescope, gradescope/labN_....zip: make gradescope LAB=lab1 [SEED=word]
	@test -n "$(LAB)" || { echo "Name the lab: make gradescope LAB=lab1"; exit 2; }
	@$(GRADE) -m labs.grader.gradescope zip $(LAB) --out "$(or $(OUT),gradescope)" $(if $(SEED),--seed "$(SEED)")

copies: .venv-grade/.ready  ## which answers of two students are alike: make copies SUBMISSIONS=folder
	@$(GRADE) -m labs.grader.copies "$(SUBMISSIONS)" $(ARGS)

test-labs: .venv-grade/.ready  ## grade perfect, wrong and broken submissions of every lab
	$(GRADE) -m pytest -n $(WORKERS) --dist loadfile $(or $(ARGS),-m 'not weekly') labs/tests

bench: $(READY)  ## compare the library's speed with its peers
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.txt
	$(BIN)/python -m benchmarks $(ARGS)

train: $(READY)  ## train a recorded run again, with its settings: make train RUN=multi30k-de-en
	$(BIN)/python -m transformer_lib train $(if $(RUN),--like $(RUN)) $(ARGS)

seeds: $(READY)  ## train several seeds of a run, keep the best on validation: make seeds RUN=multi30k-de-en JOBS=3
	$(BIN)/python -m recordings.experiments seeds $(RUN) --seeds $(or $(SEEDS),0 1 2) --jobs $(or $(JOBS),1) $(ARGS)

ablations: $(READY)  ## change one setting at a time, several seeds each, into results/ablations.json
	$(BIN)/python -m recordings.experiments ablations --seeds $(or $(SEEDS),0 1 2) --jobs $(or $(JOBS),1) $(ARGS)

ladder: $(READY)  ## train the rungs that led to the short recipe again, into results/ladder.json
	$(BIN)/python -m recordings.experiments ladder --seeds $(or $(SEEDS),0 1) --jobs $(or $(JOBS),1) $(ARGS)

record: $(READY)  ## record again what chapters claim and take minutes to show, resumable: make record ONLY="hunt game"
	$(BIN)/python -m recordings.record $(ONLY) $(ARGS)
	$(BIN)/python -m recordings.checksums

race: $(READY)  ## time a student's code against the book's, and keep a table: make race ENTRY="bpe my_bpe.py" NAME=Ana
	$(BIN)/python -m exercises.race $(ENTRY) $(if $(NAME),--name "$(NAME)") $(ARGS)

gpu: $(READY)  ## all that needs a GPU, resumable: make gpu ARGS="--minutes 9"; on a CPU ARGS=--rehearse
	$(BIN)/python -m recordings.gpu run $(ARGS)

gpu-home: $(READY)  ## take what `make gpu` left into results/: make gpu-home FROM=folder
	$(BIN)/python -m recordings.gpu home $(FROM) $(ARGS)
	$(BIN)/python -m recordings.checksums

repository:  ## set the address of your copy, and of its site: make repository URL=https://... SITE=https://...
	$(PYTHON3) -m tools.repository $(URL) $(if $(SITE),--site $(SITE))

clean:  ## remove what the build made (the environment stays)
	rm -rf _build .pytest_cache .ruff_cache

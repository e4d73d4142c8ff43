"""Cut a refreshed notebook's metadata to what does not depend on the machine that ran it."""

import sys

import nbformat
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

for path in sys.argv[1:]:
    notebook = nbformat.read(path, as_version=4)
    CoalesceStreamsPreprocessor().preprocess(notebook, {})  # what a cell prints comes in pieces, now here and now there
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    for cell in notebook.cells:
        cell.metadata = {key: value for key, value in cell.metadata.items() if key == "tags"}
    nbformat.write(notebook, path)

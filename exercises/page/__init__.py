"""The exercises in the page: the reader's code and its check run in the browser, with no server.

- `lib/` holds what stands in for PyTorch and NumPy there, a small tensor library in plain Python.
  It lies outside the packages, so that nobody imports it by mistake.
- `runner` runs one exercise: the reader's cell, then the check's.

The page's side is book/_static/run, and book/_ext/run_here.py packs the Python files for it.
"""

"""Fixtures for tests of the installed notebook kernel.

The kernelspec is looked for below GPUNOTES_KERNEL_PREFIX (as given to
`go run ./jupyter install --prefix`), or wherever Jupyter looks by itself.
GPUNOTES_KERNEL_NAME overrides the name "gpunotes".
"""
import os

import pytest

KERNEL = os.environ.get("GPUNOTES_KERNEL_NAME", "gpunotes")
PREFIX = os.environ.get("GPUNOTES_KERNEL_PREFIX")
if PREFIX:
    # Read by jupyter_core on each call, so it must be set before any test.
    data = os.path.join(os.path.abspath(PREFIX), "share", "jupyter")
    old = os.environ.get("JUPYTER_PATH")
    os.environ["JUPYTER_PATH"] = data + (os.pathsep + old if old else "")

from client import Notebook  # noqa: E402


@pytest.fixture(scope="module")
def nb():
    """One running kernel for all tests of a file."""
    with Notebook(KERNEL) as notebook:
        yield notebook


@pytest.fixture
def fresh():
    """A function that starts a kernel of its own, with other settings."""
    started = []

    def start(**kwargs):
        notebook = Notebook(KERNEL, **kwargs)
        started.append(notebook)
        return notebook.__enter__()

    yield start
    for notebook in started:
        notebook.__exit__()

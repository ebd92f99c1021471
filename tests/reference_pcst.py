"""Build pcst_fast, the solver published by Hegde, Indyk and Schmidt, to compare ours with it.

Its wheels on PyPI are older than NumPy 2 and return wrong arrays with it, without an error. So it is built from source,
with the pybind11 of today, once for each machine and Python; it is not installed. That takes about 40 seconds of CPU, a
compiler for C++ and a package index.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np

VERSION = "1.0.10"

#: Where the module is kept.
FOLDER = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kg-retrievers" / f"pcst_fast-{VERSION}"


class ReferenceMissingError(RuntimeError):
    """The reference solver cannot be fetched, built or loaded, or gives a wrong answer."""


def build_reference(folder: Path = FOLDER) -> ModuleType:
    """Return the module pcst_fast; what was built is kept in a folder.

    Raises:
        ReferenceMissingError: If that is not possible, with the reason.
    """
    path = folder / f"pcst_fast{sysconfig.get_config_var('EXT_SUFFIX')}"
    try:
        if not path.is_file():
            _build(path)
        spec = spec_from_file_location("pcst_fast", path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
    except subprocess.CalledProcessError as error:
        reason = error.stderr.strip().splitlines()[-1:]
        raise ReferenceMissingError(f"pip could not build pcst_fast {VERSION}: {' '.join(reason)}") from error
    except (OSError, ImportError, subprocess.TimeoutExpired) as error:
        raise ReferenceMissingError(f"pcst_fast {VERSION} could not be built or loaded: {error}") from error
    path_of_five = np.array([[0, 1], [1, 2], [2, 3], [3, 4]])
    found = module.pcst_fast(path_of_five, np.array([5.0, 0, 1, 0, 5]), np.ones(4), -1, 1, "strong", 0)
    if [sorted(numbers.tolist()) for numbers in found] != [[0, 1, 2, 3, 4], [0, 1, 2, 3]]:
        raise ReferenceMissingError(f"pcst_fast in {folder} is wrong about a path of five nodes: {found}.")
    return module


def _build(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        # No cache of pip: it may hold what was built with an older pybind11.
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "wheel", "--no-deps"]
        which = ["--no-binary", "pcst_fast", f"pcst_fast=={VERSION}", "--wheel-dir", folder]
        subprocess.run([*pip, *which], check=True, capture_output=True, text=True, timeout=600)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            os.replace(archive.extract(path.name, folder), path)

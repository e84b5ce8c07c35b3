"""Where Cascade keeps what is too large or too short-lived for the checkout.

<home>/models   model files, their stamps, and downloads under way
<home>/logs     one log a tier's model server
<home>/run      one file a running model server
"""

import os
import sys
from pathlib import Path


def home() -> Path:
    """CASCADE_HOME where it is set, else `cascade` in the user's cache folder. Need not exist."""
    chosen = os.environ.get("CASCADE_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "cascade"
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "cascade"


def models_folder(root: Path) -> Path:
    """Where model files lie."""
    return root / "models"


def logs_folder(root: Path) -> Path:
    """Where model servers log."""
    return root / "logs"


def run_folder(root: Path) -> Path:
    """Where running model servers are written down."""
    return root / "run"

"""The page's own scripts and styles, and plotly's, as its Python package brings it.

An address holds a hash of the content, so a browser may keep what it got for as long as it likes.
"""

import gzip
import hashlib
import re
from functools import cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

KEPT = "public, max-age=31536000, immutable"

_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_SMALL_BYTES = 1024
_STYLED = re.compile(r'if\(!document\.getElementById\("([0-9a-f]{64})"\)\)')


class Asset:
    """One file; read when it is first asked for."""

    def __init__(self, file: Traversable) -> None:
        self._file = file
        name = file.name
        self.media_type = _TYPES[name[name.rindex(".") :]]

    @cached_property
    def content(self) -> bytes:
        """Its bytes."""
        return self._file.read_bytes()

    @cached_property
    def version(self) -> str:
        """Tells its content from any other."""
        return hashlib.blake2b(self.content, digest_size=8).hexdigest()

    @cached_property
    def packed(self) -> bytes:
        """Its bytes, compressed once for all who ask."""
        return gzip.compress(self.content, 6, mtime=0)


def _found() -> dict[str, Asset]:
    own = {file.name: Asset(file) for file in (files("serving.dashboard") / "static").iterdir()}
    plotly = files("plotly") / "package_data" / "plotly.min.js"
    return {**own, "plotly.js": Asset(plotly)}


class Assets:
    """All files by name.

    Args:
        root: path of the page.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._assets = _found()

    def address(self, name: str) -> str:
        """Where a file is got, as it is now."""
        return f"{self._root}/static/{self._assets[name].version}/{name}"

    @cached_property
    def styled(self) -> list[str]:
        """Ids of elements that keep plotly from adding styles of maps, which the page has none of.

        A browser that is told to take styles from files alone would complain of them.
        """
        return _STYLED.findall(self._assets["plotly.js"].content.decode(errors="replace"))

    def prepare(self) -> None:
        """Read and compress all of them before anybody asks."""
        for asset in self._assets.values():
            _ = asset.version, asset.packed
        _ = self.styled

    def response(self, http: Request) -> Response:
        """A file for a browser.

        Raises:
            HTTPException: there is none of that name.
        """
        name = http.path_params["name"]
        asset = self._assets.get(name)
        if asset is None:
            raise HTTPException(404, f"there is no file {name!r}")
        headers = {"cache-control": KEPT, "vary": "accept-encoding"}
        body = asset.content
        if len(body) > _SMALL_BYTES and "gzip" in http.headers.get("accept-encoding", ""):
            body = asset.packed
            headers["content-encoding"] = "gzip"
        return Response(body, media_type=asset.media_type, headers=headers)

"""Writes docs/compatibility.md anew."""

import asyncio

from tests.compatibility.table import FILE, page

draft = FILE.with_suffix(".draft")
draft.write_text(asyncio.run(page()), encoding="utf-8")
draft.replace(FILE)

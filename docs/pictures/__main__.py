"""Writer of all pictures: `python -m docs.pictures`."""

from __future__ import annotations

from docs.pictures import drawn

for path, text in drawn().items():
    path.write_text(text, encoding="utf-8")

"""Pictures of the pages, drawn from berth's own settings, manifests and plans.

Belongs here: one module for each picture with `draw`, and the few shapes that they share (svg.py).
Does not belong here: facts. A picture reads them where berth has them, so that it stays true.
"""

from collections.abc import Callable, Mapping
from functools import partial

from docs.pictures import architecture, isolation, life, performance, plan
from docs.pictures.svg import Picture

PICTURES: Mapping[str, Callable[[], Picture]] = {
    "architecture": architecture.draw,
    "isolation": isolation.draw,
    "life": life.draw,
    "plan": plan.draw,
    **({"performance": performance.draw} if performance.figures().get("environment") else {}),
}
"""Pictures by the name of their file."""


GENERATED: Mapping[str, Callable[[], str]] = {
    f"docs/pictures/{name}.svg": partial(lambda picture: picture().svg(), picture)
    for name, picture in PICTURES.items()
}
"""Text of each picture's file, by its path in the clone."""

"""Pictures over HTTP: a Ray Serve application whose model takes its GPU only while somebody asks.

    GET /imagine?prompt=a ship at its berth&size=512        a picture, as PNG

The argument `model` names the module that loads the model: `diffusion` for Stable Diffusion on a
GPU, `noise` for a toy on a core.
"""

import importlib
from typing import Annotated, Any

from fastapi import FastAPI, Query, Response
from ray import serve
from ray.serve.handle import DeploymentHandle

web = FastAPI()


@serve.deployment(ray_actor_options={"num_cpus": 0, "resources": {"node:__internal_head__": 0.001}})
@serve.ingress(web)
class Ingress:
    """HTTP side, on the head without a GPU: requests wait here while there is no model."""

    def __init__(self, painter: DeploymentHandle) -> None:
        self._painter = painter

    @web.get("/imagine")
    async def imagine(
        self, prompt: str, size: Annotated[int, Query(ge=64, le=1024, multiple_of=8)] = 512
    ) -> Response:
        """Return a picture of the prompt."""
        return Response(await self._painter.paint.remote(prompt, size), media_type="image/png")


@serve.deployment
class Painter:
    """Copy of the model; the settings have the number of copies, and what one takes of a worker."""

    def __init__(self, model: str, settings: dict[str, Any]) -> None:
        self._paint = importlib.import_module(model).load(**settings)

    def paint(self, prompt: str, size: int) -> bytes:
        """Return a picture of the prompt, as PNG."""
        picture: bytes = self._paint(prompt, size)
        return picture


def build(args: dict[str, Any]) -> serve.Application:
    """Return the application.

    Args:
        args: `model`: the module that loads the model; all others: arguments of its `load`.
    """
    settings = dict(args)
    return Ingress.bind(Painter.bind(settings.pop("model"), settings))

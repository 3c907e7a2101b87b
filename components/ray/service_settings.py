"""Settings of RayServices, and services on their complete RayClusters."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from berth.components.core.types import Document, Name, NonEmpty
from berth.components.ray import kuberay_words
from berth.components.ray.complete_settings import RayClusterSettings
from berth.components.ray.settings import RayShape, Wait


class ServiceShape(RayShape):
    """RayService as written in YAML: applications of Ray Serve on a RayCluster of their own."""

    other_words: ClassVar[Mapping[str, str]] = kuberay_words.OF_SERVICES

    serve_config: Annotated[
        Document, Field(examples=[{"applications": [{"name": "app", "import_path": "app:app"}]}])
    ]
    """Configuration of Ray Serve: `applications`, and other keys of `serve deploy`
    (https://docs.ray.io/en/latest/serve/production-guide/config.html)."""
    code: Annotated[NonEmpty | None, Field(examples=["./apps/app"])] = None
    """Python file, or folder of Python files, of the applications, at most 128 KiB; the pods carry
    it for `import_path`. Default: the code is in the image or a `working_dir`."""
    clients: Annotated[list[Name], Field(examples=[["alice"]])] = []
    """Namespaces whose pods may send requests to port 8000, for example a gateway's. Default: only
    the service's own."""
    upgrade_strategy: Literal["NewCluster", "Recreate"] = "NewCluster"
    """Effect of an edit of the cluster. `NewCluster`: a second cluster starts, then the Service
    moves. `Recreate`: the service is away meanwhile; for pools without room for a second
    cluster."""
    wait: Annotated[Wait, Field(examples=[{"timeout": "20m"}])] = Wait()
    """Goal of `pulumi up`; `ready`: the applications run and answer."""


@dataclass(frozen=True)
class RayServiceSettings:
    """RayService, complete."""

    name: str
    settings: ServiceShape
    cluster: RayClusterSettings
    files: dict[str, str] = field(default_factory=dict)
    """Text of each file of the code by its path in the code's folder, which
    stacks/load/service_code.py reads."""

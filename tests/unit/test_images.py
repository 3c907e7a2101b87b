"""The images of folder images/: their Dockerfiles, pinned packages and README agree with each
other and with the rest of berth.

tests/containers/test_images.py builds them.
"""

import re
from typing import Any

import pytest
import yaml

from berth.components.hardware import versions
from berth.components.ray.images import BERTH_IMAGES, tag_of_image
from berth.lab.home import CLONE
from berth.stacks.settings.resolve import resolve_environment
from tests.containers.dockerfile import parse
from tests.unit.components.fabric import BY_NETWORKS, CPU
from tests.unit.loaded import environment_of

IMAGES = CLONE / "images"
README = (IMAGES / "README.md").read_text(encoding="utf-8")
LINK = "/opt/nccl/lib"
PER_IMAGE = pytest.mark.parametrize("image", sorted(BERTH_IMAGES))


def rest_of(image: str, name: str) -> list[str]:
    """The arguments of every instruction of a name."""
    instructions = parse((IMAGES / image / "Dockerfile").read_text(encoding="utf-8"))
    return [instruction.rest for instruction in instructions if instruction.name == name]


def requirements(image: str) -> str:
    return (IMAGES / image / "requirements.txt").read_text(encoding="utf-8")


def test_the_names_that_settings_know_are_those_of_the_folders() -> None:
    assert {path.name for path in IMAGES.iterdir() if path.is_dir()} == set(BERTH_IMAGES)


@PER_IMAGE
def test_every_python_package_is_pinned_with_its_hashes_and_no_index_is_named(image: str) -> None:
    (install,) = [run for run in rest_of(image, "RUN") if "pip install" in run]
    assert install.endswith(
        "pip install --no-cache-dir --require-hashes -r /opt/berth/requirements.txt"
    )
    assert rest_of(image, "COPY") == ["requirements.txt /opt/berth/requirements.txt"]
    text = requirements(image)
    assert not re.search(r"https?://|--(index-url|extra-index-url|find-links)", text)
    entries = re.split(r"\n(?=\S)", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).strip())
    for entry in entries:
        assert re.match(r"[\w.-]+(\[[\w,]+\])?==\S+ \\\n\s+--hash=sha256:[0-9a-f]{64}", entry), (
            entry
        )
    asked = (IMAGES / image / "requirements.in").read_text(encoding="utf-8")
    for exact in re.findall(r"^[\w-]+(?:\[[\w,]+\])?==\S+", asked, flags=re.MULTILINE):
        assert any(entry.startswith(re.sub(r"\[.*\]", "", exact)) for entry in entries), exact


def test_the_ray_of_the_image_with_podman_is_the_one_that_stacks_ask_for() -> None:
    assert f"\nray=={versions.RAY} " in requirements("ray-podman")


@PER_IMAGE
def test_the_driver_of_gkes_nodes_is_on_the_path_unless_the_base_is_rays_own_which_has_it_there(
    image: str,
) -> None:
    (base,) = [
        found.partition("=")[2] for found in rest_of(image, "ARG") if found.startswith("BASE=")
    ]
    variables = dict(found.split("=", 1) for found in rest_of(image, "ENV"))
    driver = (
        "/usr/local/nvidia/bin" in variables.get("PATH", ""),
        variables.get("LD_LIBRARY_PATH"),
    )
    assert base.startswith("rayproject/ray:") or driver == (True, "/usr/local/nvidia/lib64")


def test_images_are_built_as_an_account_with_the_roles_that_the_page_gives() -> None:
    (options,) = re.findall(r'^BUILD="(.*?)"', README, flags=re.DOTALL | re.MULTILINE)
    assert "--service-account=projects/$PROJECT/serviceAccounts/$BUILDS" in options
    # Without it, the account would need a bucket for logs.
    assert "--default-buckets-behavior=regional-user-owned-bucket" in options
    assert "--member=serviceAccount:$BUILDS --role=roles/cloudbuild.builds.builder" in README
    builds = re.findall(r"^ *gcloud builds submit .*", README, flags=re.MULTILINE)
    assert builds
    assert [line for line in builds if "$BUILD " not in line] == []


def readme_clusters() -> dict[str, Any]:
    (block,) = re.findall(r"^```yaml\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    shown = yaml.safe_load(block)["clusters"]
    assert isinstance(shown, dict)
    return shown


def test_what_the_readme_shows_is_valid_and_puts_the_images_nccl_first() -> None:
    values = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": {"cpu": CPU, "train": BY_NETWORKS},
        "clusters": readme_clusters(),
    }
    settings = environment_of("test", values).settings
    resolved = resolve_environment(settings)
    (cluster,) = resolved.clusters
    assert cluster.groups[0].nccl.library_path == LINK
    assert [warning.message for warning in resolved.warnings if warning.path[-1] == "image"] == []


def test_the_readme_names_the_image_of_the_stacks_for_production() -> None:
    assert readme_clusters()["train"]["image"].endswith(f"/berth/ray-a4:{tag_of_image('ray-a4')}")
    for stack in ("Pulumi.prod.yaml", "gallery/Pulumi.mixed.yaml"):
        values = yaml.safe_load((CLONE / "stacks" / stack).read_text(encoding="utf-8"))["config"][
            "berth:environment"
        ]
        assert (
            values["clusters"]["train"]["image"].replace("your-prod-project", "your-project")
            == (readme_clusters()["train"]["image"])
        )


@PER_IMAGE
def test_an_image_ends_as_rays_user_on_a_base_that_a_site_can_name(image: str) -> None:
    assert rest_of(image, "USER")[-1] == "1000"
    assert rest_of(image, "ARG")[0].startswith("BASE=")
    assert rest_of(image, "FROM") == ["${BASE}"]


@PER_IMAGE
def test_packages_come_from_a_fresh_list_that_is_not_kept(image: str) -> None:
    (install,) = [run for run in rest_of(image, "RUN") if "apt-get install" in run]
    assert install.startswith("apt-get update ")
    assert "rm -rf /var/lib/apt/lists" in install

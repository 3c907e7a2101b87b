"""References of images: cases of distribution/reference (reference_test.go), and slips."""

from __future__ import annotations

import pytest

from berth.components.core.image import checked_image, full_name, mirrored

DIGEST = "sha256:" + "0123456789abcdef" * 4

GOOD = [
    "test_com",
    "test.com:tag",
    "test.com:5000",
    "test.com/repo:tag",
    "test:5000/repo",
    "test:5000/repo:tag",
    f"test:5000/repo@{DIGEST}",
    f"test:5000/repo:tag@{DIGEST}",
    "sub-dom1.foo.com/bar/baz/quux:some-long-tag",
    "b.gcr.io/test.example.com/my-app:test.example.com",
    "xn--n3h.com/myimage:xn--n3h.com",
    "foo_bar.com:8080",
    "foo/foo_bar.com:8080",
    "192.168.1.1/repo",
    "192.168.1.1:5000/repo:tag",
    "[2001:db8::1]/repo",
    "[2001:db8::1]:5000/repo:tag",
    "lowercase:Uppercase",
    "rayproject/ray:2.60.0-py311-cu128",
    "a" * 255,
]

BAD = [
    "",
    "Foo Bar:::",
    "Foo",
    ":justtag",
    f"@{DIGEST}",
    "repo@sha256:" + "f" * 34,
    "validname@invalidDigest:" + "f" * 31,
    "Uppercase:tag",
    "test:5000/Uppercase/lowercase:tag",
    "a" * 256,
    "aa/asdf$$^/aa",
    "foo//bar",
    "-foo/bar",
    "[fe80::1%eth0]:5000/repo",
    "[fe80::1%@invalidzone]:5000/repo",
    "https://registry.example.com/ray",
    "ray:latest ",
    "ray:latest\n",
    "ray:",
    "ray:" + "a" * 129,
    "räy:1",
    "ray:١",
    "0123456789abcdef" * 4,
]


@pytest.mark.parametrize("text", GOOD)
def test_a_reference(text: str) -> None:
    assert checked_image(text) == text


@pytest.mark.parametrize("text", BAD)
def test_no_reference(text: str) -> None:
    with pytest.raises(ValueError, match=r"image's name has 255|not the reference of an image|has a digest of sha256"):
        checked_image(text)


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("rayproject/ray:2.60.0", "docker.io/rayproject/ray:2.60.0"),
        ("busybox", "docker.io/library/busybox"),
        ("quay.io/a/b:1", "quay.io/a/b:1"),
        ("localhost:5000/a", "localhost:5000/a"),
        (f"nvcr.io/nvidia/driver@{DIGEST}", f"nvcr.io/nvidia/driver@{DIGEST}"),
    ],
)
def test_names_are_those_that_containerd_keeps_and_a_mirror_has_them_below_its_own(image: str, name: str) -> None:
    assert full_name(image) == name
    assert (mirrored(image, "r.example.com:5000/m"), mirrored(image, "")) == (f"r.example.com:5000/m/{name}", image)

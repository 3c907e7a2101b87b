"""Sections of `berth --help`."""

SECTIONS = {
    "Settings": ("check", "docs", "engineer", "explain", "images", "new", "schema", "upgrade"),
    "Deploy": ("create", "destroy", "doctor", "preview", "up"),
    "Use": (),
    "Debug": ("diagnose", "verify"),
    "Lab": ("lab",),
}
"""Verbs by section, in the order of the page; a verb that no section names is in `Use`."""


def section_of(verb: str) -> str:
    """Return the section of a verb."""
    for section, verbs in SECTIONS.items():
        if verb in verbs:
            return section
    return "Use"

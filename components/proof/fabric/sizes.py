"""Sizes in bytes, for people."""


def readable_bytes(count: int) -> str:
    """Return bytes for people: 1024 are 1KiB."""
    value = float(count)
    units = ["Ti", "Gi", "Mi", "Ki", ""]
    while value >= 1024 and len(units) > 1:  # noqa: PLR2004 - a kibibyte
        value /= 1024
        units.pop()
    return f"{value:.4g}{units[-1]}B"

"""Generated parts of pages that are otherwise written by hand."""

BEGIN = "<!-- `make pages` writes what follows -->"
END = "<!-- end of what `make pages` writes -->"


def inserted(text: str, part: str) -> str:
    """Return a page with its generated part as it has to be.

    Args:
        text: the page as it is.
        part: text between the two comments.
    """
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{part}\n\n{END}{after}"

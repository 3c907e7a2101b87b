"""Numbers in messages."""

from decimal import Decimal


def decimal_text(amount: Decimal) -> str:
    """Return a number without exponent and trailing zeros."""
    return f"{amount.normalize():f}"

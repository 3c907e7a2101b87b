"""Repository of a user's own: `berth new` writes it, `berth upgrade` moves it to a newer berth."""

"""Campaign of faults, seeded, so that each case can be repeated."""

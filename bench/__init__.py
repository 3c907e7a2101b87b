"""Measurements, as ratios within one run, so that the machine's speed does not matter."""

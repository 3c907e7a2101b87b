"""Measurements, as ratios within one run: what a change costs must not hide behind the machine's
mood.
"""

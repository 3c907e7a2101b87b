"""Fuzzed settings: files that people and machines could write, and what berth does with them.

Belongs here: generators of files, and the judge of an outcome. Does not belong here: tests
(tests/unit/test_fuzz.py has a quick part, tests/lab/test_fuzz.py the long one).
"""

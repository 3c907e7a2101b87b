"""Tests of Ray in simulated heads."""

"""Measures that keep ids out of freed memory, dumps and swap, and checks that they are on."""

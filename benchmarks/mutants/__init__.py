"""Whether the tests find faults in the code that decides privacy, exactly-once and truth.

A mutant is the code with one operator, number, condition, loop or decorator changed; cosmic-ray
lists them. `python -m benchmarks.mutants` draws some places at random, and one mutant of each. It
runs the tests of that module on it: those are to fail. `modules` says which tests, `equivalent`
names the mutants that no test can find.
"""

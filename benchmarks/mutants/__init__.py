"""Whether the tests find faults in the code that decides privacy, exactly-once and truth.

A mutant is the code with one operator, number, condition, loop or decorator changed; cosmic-ray
lists them. `python -m benchmarks.mutants` draws places at random, and one mutant of each, and runs
the tests on it that reach the changed line: one of those is to fail.

| module | says |
|---|---|
| `modules` | which modules have mutants, and which files of tests are theirs |
| `mutant` | which mutants there are, and which are drawn |
| `equivalent` | which do the same as the code, which are known to survive, and why |
| `recorder`, `reach` | which tests reach a line |
| `tree`, `child`, `kernels`, `preloaded` | how tests are run on a mutant, in seconds |
| `results`, `page` | what came of it, and docs/mutants.md |
"""

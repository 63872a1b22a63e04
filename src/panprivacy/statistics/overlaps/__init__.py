"""Who came back: unions, overlaps and return rates of published tables of bits.

Everything here is a function of public tables and public parameters. It makes no privacy claim.

| module | contents |
|---|---|
| `patterns` | tables of one addressing key, and how many cells show each pattern of bits |
| `occupancy` | the law of these counts, given how many users have each pattern of tables |
| `unions` | estimates of all unions of the tables of a shard |
| `intervals` | the estimate of a number of users or of a ratio, its error, and its interval |
| `operations` | union, intersection, difference, Jaccard index, return rate, n of k tables |
| `joining` | tables of shards of different users as one sketch |
| `weighing` | the weights of patterns and levels in an estimate |
| `many` | the union of up to 64 tables |
| `prediction` | errors before any table is collected |
| `remarks` | notes on answers that are noise |

docs/overlaps-decoding.md proves what is claimed; docs/accuracy-overlaps.md has measurements.
"""

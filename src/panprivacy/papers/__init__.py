"""The algorithms of the papers as printed, with the local and the online model.

It imports what builds statistics, and `continual`; only the audit, tests and experiments import it.
Nothing that counts for a user in production comes here.
"""

"""Sizes and budgets, chosen before anything is collected: what the plans of all statistics share.

A plan is a function of public numbers only: epsilon, the expected number of users or the
universe, memory, how many releases and announced intrusions there will be. It predicts the error
with the same model that later decodes the counts, and equal requests share one cached plan.
"""

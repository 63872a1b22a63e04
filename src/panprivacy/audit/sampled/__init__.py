"""A lower bound on the loss from runs, for sizes beyond enumeration."""

from panprivacy.audit.sampled.adapters import Sampler, differing_users
from panprivacy.audit.sampled.looks import read_bits, read_words
from panprivacy.audit.sampled.loss import SampledLoss, sampled_loss

__all__ = ["SampledLoss", "Sampler", "differing_users", "read_bits", "read_words", "sampled_loss"]

"""What the programs share: from a specification to what counts, from rows to batches, pictures."""

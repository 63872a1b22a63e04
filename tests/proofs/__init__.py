"""The theorems of proofs/, tied to the classes that ship."""

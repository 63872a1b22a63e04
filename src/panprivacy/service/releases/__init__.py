"""The release store: the ledger, which is paid first, and the answers, which are public."""

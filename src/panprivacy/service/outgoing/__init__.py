"""Output of the service: public answers, and the ledger, which is charged before their release."""

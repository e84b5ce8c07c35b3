"""Whether real servers read from their caches what the ledger said they would."""

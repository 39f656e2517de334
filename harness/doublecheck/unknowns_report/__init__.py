"""What tests make of the ledger of unknowns: who relied on what, and who minds another answer."""

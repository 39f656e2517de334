"""The contract checks: a module for each group of clauses (--pyargs doublecheck.contracts)."""

"""The contract checks: one module a group of clauses, run with --pyargs doublecheck.contracts."""

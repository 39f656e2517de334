"""The clients that block, made from those of ``_async``: nothing here is written by hand."""

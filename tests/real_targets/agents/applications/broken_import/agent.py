"""An agent that cannot be imported."""

import nothing_of_that_name  # noqa: F401

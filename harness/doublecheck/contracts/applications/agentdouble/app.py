"""The reference application, and one without a ping function; see reference/actions.py."""

import os

from reference.agentdouble_apps import bare_app, reference_app

app, bare = reference_app(), bare_app()


if __name__ == "__main__":
    app.run(os.environ.get("HOST", "0.0.0.0"), int(os.environ.get("PORT", "8000")))

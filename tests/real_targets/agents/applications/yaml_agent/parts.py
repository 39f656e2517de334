"""What the YAML names: a model and a tool."""

from scripted import echo, model

echoing = model(echo)


def greet(name: str) -> str:
    """Greet somebody."""
    return f"hello {name}"

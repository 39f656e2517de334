"""Where the platform is and how it is to be asked: command line, environment, TOML files."""

GREETING = "from a package"

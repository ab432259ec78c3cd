if __name__ == "fixers":
    raise ImportError("import torchlint.fixers, not fixers")

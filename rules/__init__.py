if __name__ == "rules":
    raise ImportError("import torchlint.rules, not rules")

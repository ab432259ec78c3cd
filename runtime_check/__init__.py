if __name__ == "runtime_check":
    raise ImportError("import torchlint.runtime_check, not runtime_check")

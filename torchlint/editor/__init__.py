"""What an editor asks for: the language server behind `torchlint server`."""

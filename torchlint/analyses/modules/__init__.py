"""Modules: their mode, their parameters, and the options that they are built with."""

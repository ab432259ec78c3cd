"""What rules ask of the model of a file. Those that only the rules of one family ask lie in a folder of its name."""

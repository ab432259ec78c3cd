"""The semantic model of one file: what rules and fixers read.

A rule never walks the tree. It asks for calls, loops, functions and bindings, and for the value, regions and guards of
the nodes they mention. Nodes are LibCST nodes and compare by identity.
"""

"""What rules ask of the model of a file.

What the rules of one family ask lies in the folder of its name. The other folders and modules are for several families,
and know none of them.
"""

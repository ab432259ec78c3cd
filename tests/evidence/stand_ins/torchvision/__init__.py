"""What the scripts of `public_scripts.py` use of torchvision, with random pictures: the package has no build for every
torch, and its data sets need the network."""

import argparse

from mylibrary import fit

parser = argparse.ArgumentParser()
parser.add_argument("--data-workers", type=int, default=2)
parser.add_argument("--batch-size", type=int, default=20)
fit(parser.parse_args())

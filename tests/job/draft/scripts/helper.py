import argparse

from torch.utils.data import DataLoader


def make_loader(dataset, batch_size, workers=4, *, train=False):
    loader = DataLoader(dataset, batch_size, shuffle=train, num_workers=workers, drop_last=train)
    return loader


def main(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("-b", type=int, default=16, dest="batch")
    args = parser.parse_args(argv)
    train_loader = make_loader([0] * 100, args.batch, train=True)
    val_loader = make_loader([0] * 10, batch_size=50, workers=0)
    return train_loader, val_loader


main()

import click
from torch.utils.data import DataLoader


@click.command()
@click.argument("data")
@click.option("--num-workers", "-w", default=4, help="Workers of each loader.")
@click.option("--batch-size", default=48)
def train(data, num_workers, batch_size):
    loaders = {
        "train": DataLoader([data], batch_size=batch_size, num_workers=num_workers),
        "validation": DataLoader([data], batch_size=batch_size, num_workers=num_workers, timeout=90.5),
    }
    print(loaders)


if __name__ == "__main__":
    train()

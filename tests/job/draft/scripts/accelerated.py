from accelerate import Accelerator
from torch.utils.data import DataLoader

BATCH_SIZE = 24
WORKERS = 6


def main():
    accelerator = Accelerator()
    train_dl, eval_dl = accelerator.prepare(
        DataLoader([1, 2, 3], shuffle=True, batch_size=BATCH_SIZE, num_workers=WORKERS),
        DataLoader([1, 2, 3], batch_size=2 * BATCH_SIZE, num_workers=WORKERS),
    )
    for batch in train_dl:
        print(batch)


main()

from config import BATCH_SIZE
from loaders import build

if __name__ == "__main__":
    train_loader = build("train", BATCH_SIZE)
    for batch in train_loader:
        print(batch)

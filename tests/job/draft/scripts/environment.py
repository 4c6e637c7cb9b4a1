import os

from torch.utils.data import DataLoader

batch_size = int(os.environ["TRAINLAUNCH_BATCH_SIZE"])
loader = DataLoader([1], batch_size, num_workers=int(os.environ.get("TRAINLAUNCH_NUM_WORKERS", "0")))

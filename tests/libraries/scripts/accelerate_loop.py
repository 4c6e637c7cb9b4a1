"""A loop of one's own over what Accelerate prepared."""

from accelerate import Accelerator
from common import BATCH, EPOCHS, Model, Rows, optimizer_of
from torch.utils.data import DataLoader

if __name__ == "__main__":
    accelerator = Accelerator(cpu=True)
    model = Model()
    loader = DataLoader(Rows(), batch_size=BATCH, num_workers=2, shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer_of(model), loader)
    for _ in range(EPOCHS):
        for batch in loader:
            optimizer.zero_grad()
            accelerator.backward(model(**batch)["loss"])
            optimizer.step()

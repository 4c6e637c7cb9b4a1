"""Plain torch: train, then validate, then test, at module level."""

import torch
from common import BATCH, EPOCHS, Model, Rows, optimizer_of, trained
from torch.utils.data import DataLoader

train = DataLoader(Rows(), batch_size=BATCH, num_workers=2, shuffle=True)
val = DataLoader(Rows(), batch_size=BATCH, num_workers=2)
test = DataLoader(Rows(), batch_size=BATCH, num_workers=2)
model = Model()
optimizer = optimizer_of(model)
for _ in range(EPOCHS):
    for batch in train:
        trained(model, optimizer, batch["values"])
    with torch.no_grad():
        for held_out in val:
            model(held_out["values"])
with torch.no_grad():
    for last in test:
        model(last["values"])

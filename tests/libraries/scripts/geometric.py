"""PyTorch Geometric: graphs of different sizes, joined into one."""

import torch
from common import EPOCHS, Model, optimizer_of, trained
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader


def graph(number: int) -> Data:
    """Return a graph with nodes and edges."""
    nodes = 1024 + 16 * (number % 8)
    return Data(x=torch.rand(nodes, 16), edge_index=torch.randint(nodes, (2, 4 * nodes)), y=torch.zeros(1))


if __name__ == "__main__":
    loader = DataLoader([graph(number) for number in range(14 * 8)], batch_size=8, num_workers=2, shuffle=True)
    model = Model()
    optimizer = optimizer_of(model)
    for _ in range(EPOCHS):
        for batch in loader:
            trained(model, optimizer, batch.x)

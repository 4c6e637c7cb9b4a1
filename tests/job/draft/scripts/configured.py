import hydra
from torch.utils.data import DataLoader


@hydra.main(config_path="conf", config_name="config")
def main(cfg):
    train_loader = DataLoader([1], batch_size=cfg.data.batch_size, num_workers=cfg.data.workers)
    val_loader = DataLoader([1], batch_size=cfg.data.batch_size, num_workers=cfg.data.workers, **cfg.data.extra)
    print(train_loader, val_loader)


main()

sudo docker run --rm --shm-size=16Gi --gpus '"device=0,1"' trainer:1.4 torchrun --nproc_per_node=2 train.py

#!/bin/bash
#SBATCH --gpus=4
#SBATCH --cpus-per-task=32
module load podman
srun podman run --rm --device nvidia.com/gpu=all --shm-size=32g \
    registry.example.org/vision:2.4 torchrun --nproc_per_node 4 train.py --workers 8

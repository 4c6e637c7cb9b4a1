#!/bin/bash
set -euo pipefail
IMAGE=nvcr.io/nvidia/pytorch:25.06-py3
GPUS_PER_NODE=8
docker run --rm --gpus all --network host \
    -v /data:/data $IMAGE \
    torchrun --nproc_per_node $GPUS_PER_NODE pretrain_gpt.py --num-workers 4

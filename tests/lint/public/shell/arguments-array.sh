#!/bin/bash
args=(--rm --gpus all)
if [ -n "${SHM:-}" ]; then args+=(--shm-size "$SHM"); fi
docker run "${args[@]}" trainer:1.4 python train.py --num-workers 8

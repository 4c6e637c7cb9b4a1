#!/usr/bin/env bash
# starts an NGC image with the working tree in it
docker run -it --rm --gpus all \
    --ipc=host --ulimit memlock=-1 --ulimit stack=67108864 \
    -v "$PWD":/workspace nvcr.io/nvidia/pytorch:25.06-py3

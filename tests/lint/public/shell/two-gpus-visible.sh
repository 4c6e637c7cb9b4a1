docker run --rm --gpus '"device=2,3"' --shm-size=8g -e CUDA_VISIBLE_DEVICES=2,3 trainer:1.4 python train.py

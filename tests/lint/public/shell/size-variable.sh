SHM_SIZE=${SHM_SIZE:-16g}
docker run --rm --gpus all --shm-size="$SHM_SIZE" trainer:1.4 python train.py --num-workers 8

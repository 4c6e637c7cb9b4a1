docker run --rm --gpus 2 --shm-size=16g trainer:1.4 bash -c \
    'CUDA_VISIBLE_DEVICES=0 python train.py --fold 0 & CUDA_VISIBLE_DEVICES=1 python train.py --fold 1 & wait'

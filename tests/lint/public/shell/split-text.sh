docker run --rm --gpus 1 --shm-size=8g trainer:1.4 bash -c python train.py --epochs 90

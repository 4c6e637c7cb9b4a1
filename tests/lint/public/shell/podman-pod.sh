podman pod create --name lab --shm-size 8g
podman run -d --pod lab --name train trainer:1.4 python train.py --num-workers 4

docker run --rm --cpus=4 --memory=8g --shm-size=8g -e OMP_NUM_THREADS=16 trainer:1.4 python train.py --num-workers 12

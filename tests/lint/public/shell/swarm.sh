docker service create --name train --replicas 1 --shm-size 4g trainer:1.4 python train.py

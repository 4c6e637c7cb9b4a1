DOCKER_FLAGS := --rm --gpus all --shm-size=16g
eval:
	docker run $(DOCKER_FLAGS) lab/trainer:1.4 python train.py --num-workers 8

docker run -d --name notebook --gpus all --shm-size 8 -p 8888:8888 jupyter/pytorch-notebook:cuda12-2025-06-01

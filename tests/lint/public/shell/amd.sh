docker run --rm --device=/dev/kfd --device=/dev/dri --group-add video --security-opt seccomp=unconfined \
    rocm/pytorch:rocm6.4_ubuntu22.04_py3.10_pytorch_release_2.6.0 python train.py --workers 16

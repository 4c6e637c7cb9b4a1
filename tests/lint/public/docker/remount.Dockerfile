FROM nvidia/cuda:12.8.0-runtime-ubuntu24.04
RUN apt-get update && apt-get install -y python3 && \
    mount -o remount,size=8G /dev/shm
CMD ["python3 train.py"]

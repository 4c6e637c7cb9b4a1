#!/bin/sh
cat <<EOF
docker run --gpus all trainer python train.py --num-workers 4
EOF
echo "docker run --gpus all trainer python train.py --num-workers 4"

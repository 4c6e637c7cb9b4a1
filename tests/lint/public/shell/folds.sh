#!/bin/bash
for fold in 0 1 2; do
    CUDA_VISIBLE_DEVICES=$fold python train.py --fold $fold &
done
wait

#!/bin/sh
set -e
pip install -q -r requirements.txt
python train.py --num-workers "$WORKERS"

#!/bin/sh
set -e
exec python train.py "$@"

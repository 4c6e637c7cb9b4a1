docker run --privileged -v /dev:/dev --rm robot/perception:3 python3 infer.py

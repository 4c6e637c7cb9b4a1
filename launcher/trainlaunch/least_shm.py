"""Sizes of /dev/shm that others decide: what Docker and containerd give without being asked, and Ray's room."""

from trainlaunch.units import MIB

LEAST_SHM = 64 * MIB
RAY_ROOM = (11, 10)  # /dev/shm for a store of Ray's: all of it has to be free, and 5 % beside one of Ray's own size

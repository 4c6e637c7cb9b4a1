"""Sizes of /dev/shm that others decide: what Docker and containerd give without being asked, and Ray's room."""

from trainlaunch.units import MIB

LEAST_SHM = 64 * MIB
RAY_ROOM = (11, 10)  # /dev/shm for a store of Ray's: a tenth more, since the store is limited to 95 % of what is free

"""The least /dev/shm that trainlaunch decides: what Docker and containerd give a container that asks for none."""

from trainlaunch.units import MIB

LEAST_SHM = 64 * MIB

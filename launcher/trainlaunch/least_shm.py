"""The least /dev/shm: what Docker and containerd give a container that asks for none, and no plan goes below."""

from trainlaunch.units import MIB

LEAST_SHM = 64 * MIB

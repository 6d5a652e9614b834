#!/usr/bin/python3
"""mpi-job.py FILE SECONDS: the pingpong of mpi-job.c in Python, which says there what it does and prints."""
import os
import resource
import sys
import time

from mpi4py import MPI

WARM_UP, COUNT, COOL_DOWN, END = range(4)


def phase_now():
    global start, looked_at
    now = time.monotonic()
    if start == float("inf") and now - looked_at > 0.1:
        looked_at = now
        if os.path.exists(file + ".start"):
            start = float(open(file + ".start").read())
    return (now >= start) + (now >= start + seconds) + (now >= start + seconds + 1)


def cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


world = MPI.COMM_WORLD
file, seconds = sys.argv[1], float(sys.argv[2])
start, looked_at = float("inf"), 0
message = bytearray(64)
phase, step = WARM_UP, 0
if world.rank == 0:
    open(file + ".ready", "w").close()
while phase != END:
    if phase == WARM_UP:
        began, cpu_then, first = time.monotonic(), cpu(), step
    if world.rank == 0:
        message[0] = phase_now()
        world.Send([message, MPI.BYTE], 1)
        world.Recv([message, MPI.BYTE], 1)
    else:
        world.Recv([message, MPI.BYTE], 0)
        world.Send([message, MPI.BYTE], 0)
    step += 1
    if phase <= COUNT < message[0]:
        found = step - first, time.monotonic() - began, cpu() - cpu_then
    phase = message[0]
every = world.gather(found)
if world.rank == 0:
    for rank, (steps, elapsed, used) in enumerate(every):
        print(f"rank {rank} steps {steps} elapsed {elapsed:.3f} cpu {used:.3f}")

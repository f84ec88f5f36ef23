"""Compare the speed of a dask cluster with plain calls on the same tiles.

    python ci/cluster.py [--megabytes 4096] [--side 8192] [--rounds 9]

The tiles are in the workers' memory. Plain calls run there too, first in one worker alone, then in
all at once, when workers share the memory bandwidth. Rounds take turns. The numbers are medians of
ratios of speeds: 1 is as fast as plain calls. The last one compares processor time, which other
programs on the machine change least.
"""

import argparse
import statistics
import time

import dask
import dask.array as da
import distributed
import numpy as np

import fastpool
import fastpool.dask

WORKERS = 2
HALVE = {"kernel_shape": 2, "strides": 2}
OVERLAPPING = {"kernel_shape": 3, "strides": 2, "pads": 1}
WINDOWS = {
    "2x2 stride 2": HALVE,
    "2x2 stride 2, indices": {**HALVE, "return_indices": True},
    "3x3 stride 2 pad 1": OVERLAPPING,
    "3x3 stride 2 pad 1, indices": {**OVERLAPPING, "return_indices": True},
    "9x9 stride 4": {"kernel_shape": 9, "strides": 4},
}


def tile(block_info):
    info = block_info[None]
    return np.random.default_rng(info["chunk-location"]).random(info["chunk-shape"], np.float32)


def plain(window):
    """Return the time and processor time in seconds for all tiles of this worker.

    Results are kept in memory meanwhile.
    """
    tiles = [x for x in distributed.get_worker().data.values() if isinstance(x, np.ndarray)]
    start = time.perf_counter(), time.thread_time()
    kept = [fastpool.max_pool(x, layout="HW", num_threads=1, **window) for x in tiles]
    assert kept
    return time.perf_counter() - start[0], time.thread_time() - start[1]


def plain_calls(client, window, workers):
    """Return the longest of the workers' times."""
    running = [client.submit(plain, window, workers=[w], pure=False) for w in workers]
    return map(max, zip(*client.gather(running), strict=True))


def chunked(client, x, window):
    """Return the time on the cluster and a worker's processor time, in seconds.

    Results stay on the workers.
    """
    y = fastpool.dask.max_pool(x, layout="HW", **window)
    used = sum(client.run(time.process_time).values())
    start = time.perf_counter()
    kept = dask.persist(y)
    distributed.wait(kept)
    seconds = time.perf_counter() - start
    return seconds, (sum(client.run(time.process_time).values()) - used) / WORKERS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=4096, help="of input [%(default)s]")
    parser.add_argument("--side", type=int, default=8192, help="of a square tile [%(default)s]")
    parser.add_argument("--rounds", type=int, default=9, help="[%(default)s]")
    options = parser.parse_args()
    count = max(1, (options.megabytes << 20) // (4 * options.side**2 * WORKERS))  # for each worker

    cluster = distributed.LocalCluster(
        n_workers=WORKERS, threads_per_worker=1, memory_limit=0, dashboard_address=":0"
    )
    with cluster, distributed.Client(cluster) as client:
        chunks = ((options.side,) * count * WORKERS, (options.side,))
        x = da.map_blocks(tile, chunks=chunks, meta=np.empty((0, 0), np.float32)).persist()
        distributed.wait(x)
        workers = list(client.run(int))
        print(
            f"{WORKERS} workers with {count} tiles of {options.side} x {options.side} float32 each"
        )
        print(f"{'window':30}{'GB/s':>8}  of one alone  of all at once  processor's time")
        for name, window in WINDOWS.items():
            chunked(client, x, window)  # first use of memory is slow
            rounds = []
            for _ in range(options.rounds):
                seconds, used = chunked(client, x, window)
                alone, _ = plain_calls(client, window, workers[:1])
                together, own = plain_calls(client, window, workers)
                rounds.append((seconds, alone / seconds, together / seconds, own / used))
            seconds, *ratios = map(statistics.median, zip(*rounds, strict=True))
            speed = 4e-9 * count * options.side**2 / seconds
            print(f"{name:30}{speed:8.2f}" + "{:14.2f}{:16.2f}{:18.2f}".format(*ratios), flush=True)


if __name__ == "__main__":
    main()

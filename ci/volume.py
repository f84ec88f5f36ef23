"""Make the pyramid of a large volume: seconds, and the largest resident set of a process.

    python ci/volume.py FOLDER                               # 20 GB, on this machine
    python ci/volume.py FOLDER --way cluster --gigabytes 4   # by two processes of a dask cluster
    python ci/volume.py FOLDER --way peer --gigabytes 1      # by ome-zarr's write_image, with dask

uint16 noise on waves is written to FOLDER, and removed at the end. Elements of each level, drawn at
random, are compared with `fastpool.block_reduce`.
"""

import argparse
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import zarr

import fastpool.files

SIDE, LEVELS, SAMPLES = 2048, 5, 200
CHUNKS = (128, 256, 512)  # of dask


def write(path, gigabytes):
    """Write the volume, plane by plane, and return its shape."""
    planes = max(128, round(gigabytes * 1e9 / 2 / SIDE**2 / 128) * 128)
    rows, columns = np.mgrid[:SIDE, :SIDE]
    waves = (2000 + 1500 * np.sin(columns / 90) * np.cos(rows / 70)).astype(np.uint16)
    noise = np.random.default_rng(0).integers(0, 64, (16, SIDE, SIDE), np.uint16)
    header = {"descr": "<u2", "fortran_order": False, "shape": (planes, SIDE, SIDE)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for at in range(planes):
            file.write(np.roll(waves, at, 0) + noise[at % 16])
    return header["shape"]


def read(source, block_info):
    cuts = (slice(*ends) for ends in block_info[None]["array-location"])
    return np.array(np.load(source, mmap_mode="r")[tuple(cuts)])


def lazy(source, shape):
    """Return the volume as a dask array, of which each worker reads its own chunks."""
    import dask.array as da

    chunks = da.core.normalize_chunks(CHUNKS, shape)
    return da.map_blocks(read, source, chunks=chunks, meta=np.empty((0,) * 3, np.uint16))


def resident():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def files(source, target, shape):
    start = time.perf_counter()
    fastpool.files.pyramid(source, target, LEVELS, axes="zyx")
    return time.perf_counter() - start, resident()


def cluster(source, target, shape):
    import distributed

    with (
        distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=":0") as two,
        distributed.Client(two) as client,
    ):
        start = time.perf_counter()
        fastpool.files.pyramid(lazy(source, shape), target, LEVELS, axes="zyx")
        return time.perf_counter() - start, max(client.run(resident).values())


def peer(source, target, shape):
    import ome_zarr.scale
    import ome_zarr.writer

    factors = [dict.fromkeys("zyx", 2**level) for level in range(1, LEVELS + 1)]
    start = time.perf_counter()
    ome_zarr.writer.write_image(
        lazy(source, shape),
        target,
        scale_factors=factors,
        method=ome_zarr.scale.Methods.LOCAL_MEAN,
        axes=list("zyx"),
        storage_options={"chunks": (64, 64, 64)},
    )
    return time.perf_counter() - start, resident()


def count_right(source, target, level):
    """Return how many elements of a level, of those at random places, are right."""
    x, image = np.load(source, mmap_mode="r"), zarr.open_group(target, mode="r")
    y = image[image.attrs["ome"]["multiscales"][0]["datasets"][level]["path"]]
    size, right = 2**level, 0
    for at in np.random.default_rng(1).integers(0, y.shape, (SAMPLES, 3)).tolist():
        block = x[tuple(slice(i * size, (i + 1) * size) for i in at)]
        want = fastpool.block_reduce(block, size, "mean")
        right += int((y[tuple(slice(i, i + 1) for i in at)] == want).all())
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--way", choices=("files", "cluster", "peer"), default="files")
    parser.add_argument("--gigabytes", type=float, default=20, help="[%(default)s]")
    options = parser.parse_args()
    with TemporaryDirectory(dir=options.folder) as folder:
        source, target = f"{folder}/x.npy", f"{folder}/x.zarr"
        shape = write(source, options.gigabytes)
        print(f"uint16 {shape}, {Path(source).stat().st_size / 1e9:.1f} GB", flush=True)
        before = time.process_time()
        seconds, most = globals()[options.way](source, target, shape)
        used = time.process_time() - before
        print(f"{options.way}: {seconds:.0f} s, {used:.0f} s of this process's processor time")
        print(f"resident at most: {most / 1e6:.0f} MB", flush=True)
        right = [count_right(source, target, level) for level in range(LEVELS + 1)]
        print(f"right, of {SAMPLES} elements of each level: {right}")


if __name__ == "__main__":
    main()

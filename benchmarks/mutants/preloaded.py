"""What the fork server loads: the libraries of the package and of its tests, and numba warm."""

import contextlib
import importlib

import numba

for _name in (
    *("coincurve", "cryptography.hazmat.primitives.asymmetric.ed25519", "msgspec", "pandas"),
    *("cryptography.hazmat.primitives.ciphers.aead", "cryptography.hazmat.primitives.kdf.hkdf"),
    *("hypothesis.strategies", "hypothesis.extra.numpy", "_hypothesis_pytestplugin", "polars"),
    *("numba.np.arrayobj", "pyarrow.compute", "pyarrow.csv", "pyarrow.json", "pyarrow.parquet"),
    *("pytest_timeout", "xdist.plugin", "schemathesis.pytest.plugin", "httpx", "structlog", "rich"),
    *("prometheus_client", "sqlalchemy", "starlette.testclient", "typer.testing", "uvicorn"),
    *("scipy.optimize", "scipy.stats", "multiprocessing.resource_tracker", "asyncio", "sqlite3"),
    *("zoneinfo", "statistics", "concurrent.futures", "http.server", "pyrage", "yaml", "doctest"),
    *("matplotlib.figure", "Crypto.Hash.TurboSHAKE128", "anyio", "benchmarks.mutants.child"),
):
    with contextlib.suppress(ImportError):  # what an older version does not have
        importlib.import_module(_name)

numba.njit("int64(int64[::1])")(lambda numbers: numbers[0])

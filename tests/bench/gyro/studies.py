"""The case studies of the measurements, with their data and their clients."""

from __future__ import annotations

from pathlib import Path

from plait.bench.gyro.workloads import Workload, rubis_data, rubis_page, tpcw_data, tpcw_page

EXAMPLES = Path(__file__).parents[3] / "examples" / "gyro"
WORKLOADS = [
    Workload("TPC-W", str(EXAMPLES / "tpcw.py"), tpcw_data(), tpcw_page),
    Workload("RUBiS", str(EXAMPLES / "rubis.py"), rubis_data(), rubis_page),
]

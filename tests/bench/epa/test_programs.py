"""The programs of the evaluation compute what other methods compute: sorting of Python, sums by the definition, formulas."""

from __future__ import annotations

import cmath
import math
import random
import re
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from plait.bench.epa.programs import PROGRAMS, Built
from plait.epa.recording import Recording
from plait.epa.reversibility import check
from plait.epa.run import run
from tests.bench.epa.conftest import SIZES, Call

Row = Sequence[float]
NUMBER = r"-?\d+(?:\.\d+)?"


def numbers(line: str) -> list[float]:
    return [float(found) for found in re.findall(NUMBER, line)]


def lines(out: str, start: str) -> list[list[float]]:
    """The numbers in the lines that begin with a text."""
    return [numbers(line.removeprefix(start)) for line in out.splitlines() if line.startswith(start)]


def write(file: Path, rows: Sequence[Row], kind: str = "d") -> Path:
    """A data file as the programs read it."""
    flat = [value for row in rows for value in row]
    width = struct.calcsize(kind)
    head = struct.pack("<8sqqq", b"EPADATA\0", len(rows), len(rows[0]), width)
    file.write_bytes(head + struct.pack(f"<{len(flat)}{kind}", *flat))
    return file


def read(file: Path, kind: str = "d") -> list[tuple[float, ...]]:
    raw = file.read_bytes()
    magic, rows, columns, width = struct.unpack_from("<8sqqq", raw)
    assert (magic, width) == (b"EPADATA\0", struct.calcsize(kind))
    assert len(raw) == 32 + rows * columns * width
    return list(struct.iter_unpack(f"<{columns}{kind}", raw[32:]))


def test_the_sizes_are_those_of_all_programs() -> None:
    assert SIZES.keys() == {program.name for program in PROGRAMS}


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 5, 40])
def test_quicksort_sorts(threads: int, call: Call, tmp_path: Path) -> None:
    chance = random.Random(threads)
    values = [
        chance.choice([-(2**31), 2**31 - 1, chance.randrange(-50, 50), chance.randrange(10**9)]) for _ in range(700)
    ]
    data = write(tmp_path / "in", [[v] for v in values], "i")
    out = call("quicksort", threads, data, tmp_path / "out").stdout
    expected = sorted(values)
    assert [row[0] for row in read(tmp_path / "out", "i")] == expected
    count, most = Counter(values), max(Counter(values).values())
    assert lines(out, "elements") == [[700, len(count)]]
    assert lines(out, "minimum") == [[expected[0], expected[175], expected[350], expected[525], expected[-1]]]
    assert lines(out, "mode") == [[min(v for v, n in count.items() if n == most), most]]
    assert lines(out, "threads")[0][0] <= threads
    assert (lines(out, "threads")[0][0] == 0) == (threads == 1)


@pytest.mark.slow
def test_wordcount_counts(call: Call, tmp_path: Path) -> None:
    text = tmp_path / "text"
    call("wordcount", "generate", text, 900, 5, 80)
    text.write_text(text.read_text() + "don't -- Don't; 12 a1b (a) " + "x" * 30 + "\n\nend", encoding="ascii")
    content = text.read_text().lower()
    found = [(m[0][:24], m.start()) for m in re.finditer("[a-z']+", content)]
    count = Counter(word for word, _ in found)
    first = dict(reversed(found))
    best = sorted(count, key=lambda word: (-count[word], word))
    expected = [f"{count[word]} {word} (first at {first[word]})" for word in best]
    letters = sum(len(m[0]) for m in re.finditer("[a-z']+", content))
    lengths = Counter(len(word) for word, _ in found)
    expected += [f"length {length}: {lengths[length]}" for length in sorted(lengths)]
    head = f"words {len(found)} different {len(count)} letters {letters} lines {content.count(chr(10))}"
    for threads in (1, 3, 16):
        assert call("wordcount", threads, text, 10_000).stdout.splitlines() == [head, *expected]


@pytest.mark.slow
def test_fft_is_the_fourier_transform(call: Call, tmp_path: Path) -> None:
    n, limit = 64, 5
    data = tmp_path / "signal"
    call("fft", "generate", data, n, 3)
    signal = [row[0] for row in read(data)]
    spectrum = [sum(v * cmath.exp(-2j * cmath.pi * k * i / n) for i, v in enumerate(signal)) for k in range(n)]
    kept = [c if min(k, n - k) <= limit else 0 for k, c in enumerate(spectrum)]
    smooth = [sum(c * cmath.exp(2j * cmath.pi * k * i / n) for k, c in enumerate(kept)).real / n for i in range(8)]
    peaks = sorted(range(n // 2 + 1), key=lambda k: -abs(spectrum[k]))[:4]
    energy = sum(v * v for v in signal)
    for threads in (1, 3, 8):
        out = call("fft", threads, data, limit, 4).stdout
        assert lines(out, "length")[0] == pytest.approx([n, energy, energy], abs=1e-5)
        assert [found[0] for found in lines(out, "frequency")] == peaks
        for k, re_, im, power in lines(out, "frequency"):
            assert (re_, im) == pytest.approx((spectrum[int(k)].real, spectrum[int(k)].imag), abs=1e-5)
            assert power == pytest.approx(abs(spectrum[int(k)]) ** 2, abs=1e-4)
        assert "way back: exact" in out
        assert lines(out, "smoothed:")[0] == pytest.approx(smooth, abs=1e-5)


def normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


def black_scholes(row: Row, volatility: float) -> float:
    spot, strike, rate, dividend, _, time, *_ = row
    put, strike = strike < 0, abs(strike)
    d1 = (math.log(spot / strike) + (rate - dividend + volatility**2 / 2) * time) / (volatility * math.sqrt(time))
    d2 = d1 - volatility * math.sqrt(time)
    now, later = spot * math.exp(-dividend * time), strike * math.exp(-rate * time)
    return later * normal(-d2) - now * normal(-d1) if put else now * normal(d1) - later * normal(d2)


def nudged(row: Row, at: int, by: float) -> float:
    other = list(row)
    other[at] += by
    return black_scholes(other, other[4])


@pytest.mark.slow
def test_black_scholes_prices_are_those_of_the_formula(call: Call, tmp_path: Path) -> None:
    data = tmp_path / "options"
    call("blackscholes", "generate", data, 40, 2)
    rows = read(data)
    for threads in (1, 7):
        out = call("blackscholes", threads, data, 40).stdout
        found = {int(line[0]): line[1:] for kind in ("put ", "call ") for line in lines(out, kind)}
        assert len(found) == len(rows)
        for i, row in enumerate(rows):
            price, delta, _gamma, vega, theta, rho, implied = found[i]
            h = 1e-4
            assert price == pytest.approx(black_scholes(row, row[4]), abs=1e-4)
            assert delta == pytest.approx((nudged(row, 0, h) - nudged(row, 0, -h)) / (2 * h), abs=1e-4)
            assert vega == pytest.approx((nudged(row, 4, h) - nudged(row, 4, -h)) / (2 * h), abs=1e-2)
            assert theta == pytest.approx((nudged(row, 5, -h) - nudged(row, 5, h)) / (2 * h), abs=1e-2)
            assert rho == pytest.approx((nudged(row, 2, h) - nudged(row, 2, -h)) / (2 * h), abs=1e-2)
            if i % 10 == 9:  # the generator puts these prices out of their bounds
                assert implied == -1
            else:
                assert black_scholes(row, implied) == pytest.approx(row[6], abs=2e-4)
        total = lines(out, "portfolio:")[0]
        assert total[:2] == pytest.approx([40, sum(black_scholes(row, row[4]) * row[7] for row in rows)], abs=1e-2)
        assert lines(out, "market prices out of bounds:") == [[4]]


@pytest.mark.slow
def test_swaptions_with_one_payment_have_a_known_price(call: Call, tmp_path: Path) -> None:
    """Such a swaption is an option on a bond; the logarithm of the bond is normal, so Black's formula is its price."""
    strike, expiry, tenor, level, slope, volatility, per_year = 0.05, 2.0, 2.0, 0.045, 0.001, 0.012, 2
    data = write(tmp_path / "one", [[strike, expiry, tenor, tenor, level, slope, volatility]])
    out = call("swaptions", 1, data, 3000, per_year).stdout

    def bond(years: float) -> float:
        return math.exp(-years * (level + slope * years))

    def factors(years: float) -> tuple[float, float, float]:
        return volatility, 0.5 * volatility * math.exp(-0.5 * years), 0.3 * volatility * years * math.exp(-years)

    step = 1 / per_year
    variance = 0.0
    for shock in range(int(expiry * per_year)):  # the forward bond moves by the volatilities between expiry and end
        first = int(expiry * per_year) - 1 - shock
        window = [factors((first + i) * step) for i in range(int(tenor * per_year))]
        variance += step * sum((step * sum(column)) ** 2 for column in zip(*window, strict=True))
    grown = 1 + strike * tenor
    deviation = math.sqrt(variance)
    d1 = (math.log(bond(expiry + tenor) * grown / bond(expiry)) + variance / 2) / deviation
    exact = bond(expiry) * normal(deviation - d1) - grown * bond(expiry + tenor) * normal(-d1)
    price, error, plain, plain_error = lines(out, "swaption 0:")[0][-4:]
    assert abs(price - exact) < 5 * error < 0.05 * exact
    assert abs(plain - exact) < 5 * plain_error
    assert error < plain_error
    assert lines(out, "  bond")[0][0] == pytest.approx(bond(expiry + tenor), abs=1e-3)


@pytest.mark.slow
def test_swaptions_do_not_depend_on_threads(call: Call, tmp_path: Path) -> None:
    data = tmp_path / "swaptions"
    call("swaptions", "generate", data, 5)
    assert len({call("swaptions", threads, data, 20, 2).stdout for threads in (1, 2, 5, 9)}) == 1


@pytest.mark.slow
def test_kmeans_ends_at_a_fixed_point(call: Call, tmp_path: Path) -> None:
    data = tmp_path / "points"
    call("kmeans", "generate", data, 150, 3, 4, 8)
    points = read(data)
    for threads in (1, 6):
        out = call("kmeans", threads, data, 4, 500).stdout
        cluster = [int(c) for c in lines(out, "clusters of the points:")[0]]
        centres = {int(c): row[-3:] for c, *row in lines(out, "cluster ")}
        squares = 0.0
        for c, centre in centres.items():
            own = [point for point, k in zip(points, cluster, strict=True) if k == c]
            assert centre == pytest.approx([sum(axis) / len(own) for axis in zip(*own, strict=True)], abs=1e-5)
        for point, c in zip(points, cluster, strict=True):
            distances = {k: math.dist(point, centre) for k, centre in centres.items()}
            assert distances[c] <= min(distances.values()) + 1e-5
            squares += distances[c] ** 2
        assert lines(out, "points ")[0][2] == pytest.approx(squares, rel=1e-6)


@pytest.mark.slow
def test_pca_finds_eigenvectors_of_the_covariance(call: Call, tmp_path: Path) -> None:
    data = tmp_path / "matrix"
    call("pca", "generate", data, 40, 4, 6)
    rows = read(data)
    columns = list(zip(*rows, strict=True))
    means = [sum(column) / len(rows) for column in columns]

    def covariance(i: int, j: int) -> float:
        return math.fsum((row[i] - means[i]) * (row[j] - means[j]) for row in rows) / (len(rows) - 1)

    matrix = [[covariance(i, j) for j in range(4)] for i in range(4)]
    total = sum(matrix[i][i] for i in range(4))
    for threads in (1, 3):
        out = call("pca", threads, data, 4).stdout
        assert lines(out, "means 4:")[0] == pytest.approx(means, abs=1e-5)
        eigenvalues = [row[1] for row in lines(out, "eigenvalue ")]
        vectors = [row[1:] for row in lines(out, "component ")]
        assert sum(eigenvalues) == pytest.approx(total, rel=1e-6)
        assert eigenvalues == sorted(eigenvalues, reverse=True)
        for value, vector in zip(eigenvalues, vectors, strict=True):
            assert math.hypot(*vector) == pytest.approx(1, abs=1e-5)
            image = [sum(m * v for m, v in zip(row, vector, strict=True)) for row in matrix]
            assert image == pytest.approx([value * v for v in vector], abs=1e-3)
        two = call("pca", threads, data, 2).stdout
        left_out = (total - sum(eigenvalues[:2])) * (len(rows) - 1)
        assert lines(two, "squared error")[0][0] == pytest.approx(left_out, rel=1e-4)
        centred = [v - m for v, m in zip(rows[0], means, strict=True)]
        dots = [sum(c * v for c, v in zip(centred, vector, strict=True)) for vector in vectors[:2]]
        assert lines(two, "projection 0:")[0] == pytest.approx(dots, abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_bad_input_is_told(name: str, call: Call, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    assert "cannot be read" in call(name, 2, tmp_path / "nothing", code=2).stderr
    assert "THREADS" in call(name, "two", bad, code=2).stderr
    assert "usage" in call(name, code=2).stderr
    if name == "wordcount":
        return
    bad.write_bytes(b"EPADATA\0")
    assert "too short" in call(name, 2, bad, code=2).stderr
    call(name, "generate", bad, 8)
    whole = bad.read_bytes()
    bad.write_bytes(whole[:-3])
    assert "too short" in call(name, 2, bad, code=2).stderr
    bad.write_bytes(b"X" + whole[1:])
    assert "is not a data file" in call(name, 2, bad, code=2).stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_each_program_is_a_sound_target(name: str, instrumented: Callable[[str], Built], tmp_path: Path) -> None:
    """The golden run passes the check with threads, and other schedules give the same trace. FileSize has a place."""
    built = instrumented(name)
    recordings = []
    for seed in range(3):
        folder = tmp_path / str(seed)
        assert run(built.binary, built.arguments(built.program.threads), folder, yields=seed or None).code == 0
        recordings.append(Recording(folder))
    assert check(recordings[0]).verdict.status == "holds"
    assert len(recordings[0].threads) > 2
    assert len({recording.native.digest() for recording in recordings}) == 1
    assert {site.name for site in recordings[0].table.sites if site.op == "call"} >= {"fread", "fwrite", "malloc"}

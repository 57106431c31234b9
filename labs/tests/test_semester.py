"""The semester of semester.py, small: one student of each kind."""

import pytest
import semester


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("lab", ["lab3"])
def test_one_of_each_kind(tmp_path, lab):
    rows, _ = semester.simulate(tmp_path, 9, [lab], kernels=False)
    by = {row["kind"]: row for row in rows}
    assert set(by) == set(semester.KINDS) - {"absent"}
    assert by["hostile"]["automatic"] == 0 and "hides errors" in by["hostile"]["note"]
    assert 0 < by["looping"]["automatic"] < 16 and "Timeout" in by["looping"]["note"]
    assert by["perfect"]["automatic"] == 16 and not by["perfect"]["note"]

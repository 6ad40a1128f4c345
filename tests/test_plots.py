"""Pictures: they draw what they say. How they look is for the eye."""

import warnings

import numpy as np
import pytest

import rdiff
from rdiff import AccuracyWarning, InputError, plots
from rdiff.observables import parse_all

Figure = pytest.importorskip("matplotlib.figure").Figure


@pytest.fixture
def drawn(monkeypatch):
    """The figures that were saved, with what is on them."""
    figures = []
    real = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda figure, *a, **k: (figures.append(figure), real(figure, *a, **k))[1])
    return figures


def law(beta=1.0, b=1):
    return rdiff.StationaryLaw(rdiff.JSQDiffusion(beta, b))


def line(figure, label):
    """The line with that beginning of its label."""
    return next(curve for axis in figure.axes for curve in axis.get_lines() if curve.get_label().startswith(label))


@pytest.mark.parametrize("beta", [0.05, 1.0, 5.0])
@pytest.mark.parametrize("ending", ["png"])
def test_law(tmp_path, drawn, beta, ending):
    file = tmp_path / f"law.{ending}"
    plots.law(file, law(beta))
    assert file.stat().st_size > 10_000
    (figure,) = drawn
    assert len(figure.axes) == 5
    # the straight line of the density of Y2 at 0 and the exponential one of its tail are drawn on top of the law
    y, density = line(figure, "density of $Y_2$").get_data()
    power = line(figure, "$c").get_ydata()
    assert np.all(density > 0) and y[0] < 1e-8 and np.allclose(density[:40], power[:40], rtol=0.02)
    x, tail = line(figure, "$P(Y_2").get_data()
    assert tail[0] == 1.0 and np.all(np.diff(tail) < 0)
    assert tail[100] == pytest.approx(law(beta).tail(x[100]))


@pytest.mark.parametrize(("beta", "k"), [(0.5, "0.6488"), (1.0, "0.3882"), (2.0, "0.0972")])
def test_power_at_zero_is_that_of_the_reference(tmp_path, drawn, beta, k):
    plots.law(tmp_path / "law.png", law(beta))
    assert f"$k = {k}" in line(drawn[0], "$c").get_label()


def test_law_without_buffer(tmp_path, drawn):
    plots.law(tmp_path / "law.pdf", law(1.0, 0), title="Erlang")
    (figure,) = drawn
    x, density = figure.axes[0].get_lines()[0].get_data()
    assert density[0] == pytest.approx(0.28759997) and np.trapezoid(density, x) == pytest.approx(1, abs=1e-3)


def test_contours_of_f(tmp_path, drawn):
    here = law()
    h = parse_all(["y1", "y2", "y1*y2"])
    plots.poisson(tmp_path / "f.svg", here, h)
    (figure,) = drawn
    shown = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title() for axis in shown] == ["h = y1", "h = y2", "h = y1*y2"]
    # f = y2 - y1 for h = y1: each contour is a line along the direction of reflection, (1, 1)
    for path, level in zip(shown[0].collections[0].get_paths(), shown[0].collections[0].levels, strict=True):
        assert np.allclose(path.vertices[:, 1] - path.vertices[:, 0], level, atol=1e-6)


def test_f_of_a_jump_is_marked(tmp_path, drawn):
    with pytest.warns(AccuracyWarning, match="y2>1"):
        plots.poisson(tmp_path / "f.png", law(), parse_all(["y2>1"]))
    assert "not smooth" in drawn[0].axes[0].get_title()


def test_f_without_buffer(tmp_path, drawn):
    plots.poisson(tmp_path / "f.png", law(1.0, 0), parse_all(["y1"]))
    y, f = drawn[0].axes[0].get_lines()[0].get_data()
    assert abs(f[0]) < 1e-12 and np.allclose(f, law(1.0, 0).poisson(lambda y: y[0])(y[:, None]))


def test_no_warnings_and_a_wrong_ending(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plots.law(tmp_path / "a.png", law(3.0, 2))
    for draw in (lambda file: plots.law(file, law()), lambda file: plots.poisson(file, law(), parse_all(["y2"]))):
        with pytest.raises(InputError, match="cannot draw"):
            draw(tmp_path / "a.docx")

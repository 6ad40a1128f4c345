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
    assert [axis.get_title() for axis in shown] == ["$h$ = $y_1$", "$h$ = $y_2$", r"$h$ = $y_1\,y_2$"]
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


def test_queue_law(tmp_path, drawn):
    queue = rdiff.JSQQueue(25, 2, beta=1.0)
    exact = queue.exact()
    plots.queue_law(tmp_path / "x.png", exact, law(b=2))
    (figure,) = drawn
    joint, _, first, second, bar = figure.axes
    # atoms times sqrt(n) at the points of the lattice, the whole law of X2 in the tail
    for axis, i in ((first, 1), (second, 2)):
        x, heads = line(figure, rf"$\sqrt{{n}}\,P(X_{i}").get_data()
        chances = exact.marginal(i)[::-1] if i == 1 else exact.marginal(i)
        assert np.allclose(x, np.arange(len(x)) / 5) and np.allclose(heads, 5 * chances[: len(x)])
        assert heads.sum() / 5 > 0.99 and heads.max() < axis.get_ylim()[1]
        y, density = line(figure, f"density of $Y_{i}").get_data()
        assert np.allclose(density[1:], law().marginal(i, y[1:]))
    x, above = line(figure, "$P(X_2").get_data()
    assert np.allclose(above, [1 - exact.marginal(2)[: k + 1].sum() for k in range(len(x))], atol=1e-12)
    # cells in the units of a density: their sum, less what lies outside the picture
    cells = joint.collections[0].get_array()
    assert 0.99 < cells.sum() / 25 < 1 and cells.shape == (len(line(figure, r"$\sqrt{n}\,P(X_2").get_xdata()), 18)
    assert "x_1" in joint.get_xlabel() and "x_2" in joint.get_ylabel() and "density" in bar.get_ylabel()


def test_queue_law_of_samples_is_near_the_exact_one(tmp_path, drawn):
    queue = rdiff.JSQQueue(25, 1, beta=1.0)
    laws = queue.exact(), queue.simulate(key=1, horizon=500.0), queue.simulate(key=2).samples(every=2.0, horizon=500.0)
    for k, X in enumerate(laws):
        plots.queue_law(tmp_path / f"{k}.svg", X, law())
    heads = [line(figure, r"$\sqrt{n}\,P(X_1").get_ydata()[:12] for figure in drawn]
    assert np.allclose(heads[1], heads[0], atol=0.03) and np.allclose(heads[2], heads[0], atol=0.03)
    assert not np.allclose(heads[1], heads[2], atol=1e-6)


def test_queue_law_alone_and_without_buffer(tmp_path, drawn):
    plots.queue_law(tmp_path / "a.png", rdiff.JSQQueue(100, 1, beta=1.0, alpha=0.75).exact())
    plots.queue_law(tmp_path / "b.png", rdiff.JSQQueue(100, 0, beta=1.0).exact(), law(b=0))
    assert len(drawn[0].axes) == 5 and "0.75" in drawn[0].get_suptitle() and not drawn[0].axes[0].collections[1:]
    assert len(drawn[1].axes) == 1
    y, density = line(drawn[1], "density of $Y_1").get_data()
    assert np.allclose(density, law(b=0).marginal(1, y))


def test_queue_law_refuses_what_is_not_the_limit(tmp_path):
    queue = rdiff.JSQQueue(25, 1, beta=1.0)
    for X, Y, message in (
        (queue.exact(), law(2.0), "not the limit"), (queue.exact(), law(b=0), "not the limit"),
        (queue.exact(), rdiff.SimulatedLaw(rdiff.JSQDiffusion(1.0), key=0), "density"), (queue, law(), "a law of a queue"),
        (rdiff.JSQQueue(25, 1, beta=1.0, alpha=0.75).exact(), law(), "not the limit"), (law(), law(), "a law of a queue"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=message):
            plots.queue_law(tmp_path / "x.png", X, Y)  # pyright: ignore
    with pytest.raises(InputError, match="cannot draw"):
        plots.queue_law(tmp_path / "x.docx", queue.exact(), law())


@pytest.fixture(scope="module")
def run_with_draws():
    h = {"y1": lambda y: y[0], "y2": lambda y: y[1]}
    return rdiff.long_run_average(rdiff.JSQDiffusion(1.0), h, key=0, chains=64, horizon=100.0, draws=True)


def test_diagnostics(tmp_path, drawn, run_with_draws):
    plots.diagnostics(tmp_path / "run.png", run_with_draws, title="a run")
    (figure,) = drawn
    assert len(figure.axes) == 4
    for axis, found in zip(figure.axes[::2], run_with_draws.values(), strict=True):
        (mean,) = axis.get_lines()
        assert mean.get_ydata()[-1] == pytest.approx(found.draws.mean(), rel=1e-9)
    assert [axis.get_ylabel() for axis in figure.axes[::2]] == [r"$E\,Y_1$", r"$E\,Y_2$"]
    with pytest.raises(InputError, match="draws=True"):
        plots.diagnostics(tmp_path / "run.png", rdiff.Estimate(1.0, 0.1))


def test_sweep(tmp_path, drawn):
    h = {"y2": lambda y: y[1], "y1": lambda y: y[0], "y1*y2": lambda y: y[0] * y[1]}
    found = rdiff.sweep({"beta": [2.0, 0.5, 1.0]}, h, chains=64, horizon=50.0)
    exact = rdiff.sweep({"beta": [0.5, 1.0, 2.0]}, h, law="exact")
    plots.sweep(tmp_path / "sweep.png", found, exact)
    (figure,) = drawn
    assert line(figure, "simulated").get_xdata().tolist() == [0.5, 1.0, 2.0]
    assert line(figure, "exact").get_ydata() == pytest.approx(exact.mean("y2"))
    assert [axis.get_visible() for axis in figure.axes] == [True, True, True, False]
    two = rdiff.sweep({"beta": [0.5, 1.0], "b": [1, 2]}, h, law="exact")
    with pytest.raises(InputError, match="one number that varies, got beta, b"):
        plots.sweep(tmp_path / "sweep.png", two)


def test_marginals(tmp_path, drawn):
    Q = rdiff.JSQQueue(n=25, b=1, beta=1.0)
    exact = Q.exact()
    plots.marginals(tmp_path / "laws.png", {"run": Q.simulate(key=0, horizon=50.0), "exact": exact, "limit": law()})
    (figure,) = drawn
    assert len(figure.axes) == 3
    assert line(figure, "exact").get_ydata()[0] == pytest.approx(5 * exact.marginal(1)[25])  # X1 = 0 is Q1 = n
    with pytest.raises(InputError, match="'Erlang' is no law of a queue with a buffer"):
        plots.marginals(tmp_path / "laws.png", {"Erlang": rdiff.JSQQueue(n=25, b=0, beta=1.0).exact()})


def test_bias(tmp_path, drawn):
    plots.bias(tmp_path / "bias.png", rdiff.JSQDiffusion(1.0), lambda y: y[1], steps=(0.4, 0.2))
    (figure,) = drawn
    # The bias of E Y2 at beta = 1, which `rdiff bench bias` prints.
    assert line(figure, "BridgeEuler").get_ydata() == pytest.approx([0.0487, 0.0975], abs=2e-4)


def test_average_draws(tmp_path):
    from click.testing import CliRunner

    from rdiff.cli.average import average

    words = ["--chains", "64", "--horizon", "50", "--observable", "y2", "--json"]
    plain, with_plot = (CliRunner().invoke(average, [*words, *more]) for more in ([], ["--plot", str(tmp_path / "run.png")]))
    assert plain.exit_code == with_plot.exit_code == 0 and (tmp_path / "run.png").stat().st_size > 10_000
    assert plain.stdout == with_plot.stdout  # a picture changes no number

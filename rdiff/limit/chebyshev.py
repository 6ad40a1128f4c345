"""Polynomials on an interval: nodes, differentiation, interpolation and quadrature in float64."""

import functools

import numpy as np
from jaxtyping import Float

Vector = Float[np.ndarray, " n"]
Matrix = Float[np.ndarray, "m n"]


@functools.cache
def lobatto(degree: int) -> tuple[Vector, Vector]:
    """Chebyshev-Lobatto nodes on [0, 1], from 0 up, and their barycentric weights."""
    nodes = np.sin(0.5 * np.pi * np.arange(degree + 1) / degree) ** 2
    weights = (-1.0) ** np.arange(degree + 1)
    weights[[0, -1]] *= 0.5
    return nodes, weights


@functools.cache
def radau(stages: int) -> tuple[Vector, Vector]:
    """Right Radau nodes on (0, 1], the last of them 1, and their quadrature weights (exact to degree 2 stages - 2)."""
    from scipy.special import roots_jacobi

    inner = roots_jacobi(stages - 1, 1.0, 0.0)[0] if stages > 1 else np.zeros(0)
    nodes = np.append((inner + 1) / 2, 1.0)
    moments = 1.0 / np.arange(1, stages + 1)
    weights = np.linalg.solve(np.vander(nodes, increasing=True).T, moments)
    return nodes, weights


@functools.cache
def legendre(count: int) -> tuple[Vector, Vector]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


@functools.cache
def gauss_lobatto(count: int) -> tuple[Vector, Vector]:
    """Gauss-Lobatto nodes and weights on [0, 1], both ends among the nodes."""
    from scipy.special import eval_legendre, roots_jacobi

    nodes = np.concatenate([[-1.0], roots_jacobi(count - 2, 1.0, 1.0)[0], [1.0]])
    weights = 2 / (count * (count - 1) * eval_legendre(count - 1, nodes) ** 2)
    return (nodes + 1) / 2, weights / 2


def barycentric(nodes: Vector) -> Vector:
    """Barycentric weights of any distinct nodes, scaled to largest 1."""
    differences = nodes[:, None] - nodes[None, :]
    np.fill_diagonal(differences, 1.0)
    weights = 1.0 / np.prod(differences * 4, axis=1)
    return weights / np.max(np.abs(weights))


def differentiation(nodes: Vector, weights: Vector) -> Matrix:
    """The matrix that takes values at the nodes to the derivative of their interpolant there.

    The diagonal is minus the sum of the row, so that constants have derivative 0 exactly.
    """
    differences = nodes[:, None] - nodes[None, :]
    np.fill_diagonal(differences, 1.0)
    matrix = (weights[None, :] / weights[:, None]) / differences
    np.fill_diagonal(matrix, 0.0)
    np.fill_diagonal(matrix, -matrix.sum(axis=1))
    return matrix


def interpolation(nodes: Vector, weights: Vector, at: Vector) -> Matrix:
    """The matrix that takes values at the nodes to their interpolant at the points `at`."""
    differences = at[:, None] - nodes[None, :]
    hit = differences == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = weights / differences
        matrix = terms / terms.sum(axis=1, keepdims=True)
    rows = hit.any(axis=1)
    matrix[rows] = hit[rows]
    return matrix

"""The noises of cumulative links against scipy.stats, in the middle and far out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from halfseen.likelihoods import LINKS
from tests.graded.oracle import NOISES, log_mass

every_link = pytest.mark.parametrize(("link", "noise"), [(LINKS[n], NOISES[n]) for n in LINKS], ids=LINKS)
Z = np.array([-79.0, -40.0, -12.0, -3.0, -0.7, -1e-3, 0.0, 0.2, 1.0, 3.0, 12.0, 40.0, 79.0])


@every_link
def test_the_density_its_score_quantiles_and_masses(link, noise):
    assert LINKS.keys() == NOISES.keys()
    assert link is LINKS[link.name]
    assert_allclose(link.cdf(Z), noise.cdf(Z), rtol=1e-12, atol=1e-300)
    assert_allclose(link.log_density(Z), noise.logpdf(Z), rtol=1e-12)
    p = np.array([1e-6, 1e-3, 0.1, 0.5, 0.77, 0.999])
    assert_allclose(link.quantile(p), noise.ppf(p), rtol=1e-9, atol=1e-12)
    z = Z[np.abs(Z) <= 12]
    slope = (noise.logpdf(z + 1e-5) - noise.logpdf(z - 1e-5)) / 2e-5
    assert_allclose(link.score(z), slope, rtol=1e-5, atol=1e-5)
    a, b = (z[np.greater(*np.meshgrid(Z, Z)[::-1])] for z in np.meshgrid(Z, Z))
    assert np.all(a < b)
    assert_allclose(link.log_mass(a, b), log_mass(noise, a, b), rtol=1e-9, atol=1e-15)
    # The ends are taken for infinity: the mass beyond them is none, to all digits.
    far = link.far
    assert noise.cdf(-far) + noise.sf(far) <= 1e-15
    assert_allclose(link.log_mass(np.array([-far]), np.array([far])), 0, atol=1e-14)
    assert np.all(np.exp(link.log_density(np.array([-far, far]))) < 1e-29)


@every_link
@pytest.mark.parametrize("width", [1e-9, 1e-6, 1e-3])
def test_the_mass_of_a_narrow_place_is_its_density_times_its_width(link, noise, width):
    z = Z[np.abs(Z) <= 3]
    middle = noise.logpdf(z + width / 2) + np.log(width)
    assert_allclose(link.log_mass(z, z + width), middle, atol=5 * width + 1e-15 / width)


@every_link
def test_single_precision_neither_overflows_nor_loses_its_way(link, noise):
    z = Z.astype(np.float32)
    with np.errstate(over="raise", divide="raise", invalid="raise"):
        found = [link.log_mass(z[:-1], z[1:]), link.log_density(z), link.score(z), link.cdf(z)]
    assert {array.dtype for array in found} == {np.dtype(np.float32)}
    wide = z.astype(float)
    assert_allclose(found[0], log_mass(noise, wide[:-1], wide[1:]), rtol=2e-4, atol=1e-6)
    assert_allclose(found[1], noise.logpdf(wide), rtol=1e-5)

"""A statistic of one's own, which reads the bits of a `Density` otherwise: who stayed away?

With a line in `panprivacy.statistics.catalogue.KINDS` all programs, the audit and the tests know it.
"""

from panprivacy.statistics.density.decoder import DensityModel
from panprivacy.statistics.density.plan import DensityPlan
from panprivacy.statistics.density.sizes import DensitySizes
from panprivacy.statistics.density.statistic import Density
from panprivacy.statistics.entry import CatalogueEntry
from panprivacy.statistics.release import Name


class AbsentModel(DensityModel):  # a share errs as the share of all others does
    def estimate(self, ones):
        return 1 - super().estimate(ones)


class AbsentPlan(DensityPlan):
    question, name = "what share of the members stayed away?", Name("", "absent")

    def model(self, epoch):
        share = super().model(epoch)
        return AbsentModel(share.universe, share.cells, share.contrast, share.noise_variance)

    def truth(self, name, states, last):
        return 1 - super().truth(name, states, last)

    def synthetic_users(self, answer):
        return super().synthetic_users(1 - answer)


class AbsentSizes(DensitySizes, frozen=True, tag="absent"):
    """The share of a list of members that stayed away."""

    def plan(self, request):
        shares = super().plan(request)
        return AbsentPlan(shares.universe, shares.cells, request, shares.split)


class Absent(Density):
    """What share of the members stayed away?"""

    __slots__ = ()

    entry = CatalogueEntry(AbsentSizes)


members = Absent(universe=100_000, epsilon=1)
members.update(range(30_000))
print(members.release())

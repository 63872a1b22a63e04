"""All figures, one after another."""

from reproductions.digalakis import (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    reach,
)

for each in (figure_1, figure_2, figure_3, figure_4, figure_5, figure_6, figure_7, reach):
    each.main()

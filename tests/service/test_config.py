"""A configuration that was loaded."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from panprivacy.service.config.config import Config
from tests.service.test_loading import STREAM


def test_a_loaded_configuration_cannot_be_changed(read):
    config = read(STREAM)
    assert isinstance(config, Config)
    with pytest.raises(AttributeError):
        config.tokens = ()
    assert isinstance(config.streams["visits"].epsilon, Fraction)
    assert not isinstance(config.streams["visits"].confidence, Decimal)

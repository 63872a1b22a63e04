"""Metrics in the protobuf format, decoded by Google's library."""

from __future__ import annotations

import math

import pytest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from panprivacy.service.outgoing.histograms import published_bins
from panprivacy.service.web.exponential import Buckets, HistogramFamily
from panprivacy.service.web.protobuf import generate
from tests.service.binned import bins

descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
from google.protobuf import descriptor_pool, message_factory  # noqa: E402
from google.protobuf.internal.decoder import _DecodeVarint  # noqa: E402

# name, number, type and whether repeated, from io/prometheus/client/metrics.proto
MESSAGES = {
    "LabelPair": "name 1 string, value 2 string",
    "Gauge": "value 1 double",
    "Bucket": "cumulative_count 1 uint64, upper_bound 2 double",
    "BucketSpan": "offset 1 sint32, length 2 uint32",
    "Histogram": (
        "sample_count 1 uint64, sample_sum 2 double, bucket 3 *Bucket, schema 5 sint32, "
        "zero_threshold 6 double, zero_count 7 uint64, negative_span 9 *BucketSpan, "
        "negative_delta 10 *sint64, positive_span 12 *BucketSpan, positive_delta 13 *sint64"
    ),
    "Metric": "label 1 *LabelPair, gauge 2 Gauge, histogram 7 Histogram",
    "MetricFamily": "name 1 string, help 2 string, type 3 int32, metric 4 *Metric",
}


def family_class():
    """The class of a message, from the numbers of its fields."""
    file = descriptor_pb2.FileDescriptorProto(name="metrics.proto", package="p", syntax="proto2")
    kinds = descriptor_pb2.FieldDescriptorProto
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for one in fields.split(", "):
            called, number, kind = one.split()
            label = kinds.LABEL_REPEATED if kind.startswith("*") else kinds.LABEL_OPTIONAL
            kind = kind.lstrip("*")
            told = {"name": called, "number": int(number), "label": label}
            if kind in MESSAGES:
                message.field.add(type=kinds.TYPE_MESSAGE, type_name=f".p.{kind}", **told)
            else:
                message.field.add(type=getattr(kinds, f"TYPE_{kind.upper()}"), **told)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.MetricFamily"))


class Given(Collector):
    def __init__(self, *families):
        self.collect = lambda: iter(families)


def decoded(*families):
    """The families, by name, with nothing left over."""
    body, place, found = generate(Given(*families)), 0, {}
    make = family_class()
    while place < len(body):
        length, place = _DecodeVarint(body, place)
        one = make.FromString(body[place : place + length])
        assert not list(_unknown(one))
        found[one.name], place = one, place + length
    assert place == len(body)
    return found


def _unknown(message):
    """What the definition does not know."""
    if message.ByteSize() != sum(len(part) for part in [message.SerializeToString()]):
        yield message
    from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: PLC0415

    yield from UnknownFieldSet(message)
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in value if hasattr(value, "append") else [value]:
                yield from _unknown(one)


def test_gauges_have_their_labels_and_values():
    gauge = GaugeMetricFamily("g", "says, in ü", labels=["stream"])
    numbers = [1.5, -2.0, math.inf, 0.0]
    for number in numbers:
        gauge.add_metric([f"s{number}"], number)
    found = decoded(gauge, GaugeMetricFamily("none", "no sample"))
    assert list(found) == ["g"]
    assert (found["g"].help, found["g"].type) == ("says, in ü", 1)
    assert [one.gauge.value for one in found["g"].metric] == numbers
    assert [(pair.name, pair.value) for pair in found["g"].metric[0].label] == [("stream", "s1.5")]


def histogram(*told, **given):
    rows = published_bins(bins(*told, **given))
    family = HistogramFamily("h", "says", [Buckets.of(one) for one in rows])
    (found,) = decoded(family).values()
    assert found.type == 4
    (metric,) = found.metric
    return metric.histogram


@pytest.mark.parametrize("scale", [1, 1_000, 10**12])
def test_a_native_histogram_has_both_kinds_of_buckets(scale):
    counts = [scale * one for one in (4, 500, 0, 7, 1)]
    found = histogram([0.25, 0.5, 1, 2], counts)
    assert (found.schema, found.zero_threshold, found.zero_count) == (0, 0.25, counts[0])
    (span,) = found.positive_span
    assert (span.offset, span.length) == (-1, 4)  # bucket -1 ends at a half
    deltas = list(found.positive_delta)
    assert [sum(deltas[: place + 1]) for place in range(4)] == counts[1:]
    assert found.sample_count == sum(counts)
    assert [one.upper_bound for one in found.bucket] == [0.25, 0.5, 1, 2, math.inf]
    assert found.bucket[-1].cumulative_count == sum(counts)


def test_a_schema_below_zero_is_told():
    assert histogram([1, 16, 256], [1, 2], is_open=False).schema == -2


def test_another_histogram_has_no_native_part():
    found = histogram([-30, 0, 30], [1, 2, 3, 4])
    assert not found.HasField("schema")
    assert not found.HasField("zero_threshold")
    assert not found.positive_span
    assert found.sample_sum == 1 * -30 + 2 * -15 + 3 * 15 + 4 * 30
    assert [one.cumulative_count for one in found.bucket] == [1, 3, 6, 10]

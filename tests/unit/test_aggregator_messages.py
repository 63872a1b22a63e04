"""DAP's messages: the bytes that draft-ietf-ppm-dap-17 says, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from panprivacy.devices.aggregator.messages import (
    AGGREGATE_SHARE_REQ,
    CIPHERTEXT,
    ERRORS,
    FINISH,
    INITIALIZE,
    JOB,
    JOB_INIT_REQ,
    REPORT,
    RESPONSES,
    SHARES,
    UPLOAD,
    AggregateShareReq,
    AggregationJobInitReq,
    BatchMode,
    BatchSelector,
    Extension,
    HpkeCiphertext,
    ReportError,
    ReportMetadata,
    ReportShare,
    UploadedReport,
    UploadStatus,
    VerifyInit,
    VerifyResp,
    base64,
)
from panprivacy.devices.aggregator.presentation import decoded
from panprivacy.errors import InputError

ID, OTHER = bytes(range(16)), bytes(16)
PLAIN = ReportMetadata(ID, 17, ())
EXTENDED = ReportMetadata(ID, 0, (Extension(0x0102, b"xy"), Extension(3, b"")))
LEADERS, HELPERS = HpkeCiphertext(2, b"enc", b"payload"), HpkeCiphertext(3, b"e", b"p")
SELECTOR = BatchSelector(BatchMode.LEADER_SELECTED, b"batch")
SHARE = ReportShare(PLAIN, b"", HELPERS)

TIME = "0000000000000011"
LEADERS_HEX = "02" + "0003" + b"enc".hex() + "00000007" + b"payload".hex()
HELPERS_HEX = "03" + "0001" + b"e".hex() + "00000001" + b"p".hex()
PLAIN_HEX = ID.hex() + TIME + "0000"
SHARE_HEX = PLAIN_HEX + "00000000" + HELPERS_HEX

WRITTEN = [
    (CIPHERTEXT, LEADERS, LEADERS_HEX),
    (
        REPORT,
        UploadedReport(PLAIN, b"public", LEADERS, HELPERS),
        PLAIN_HEX + "00000006" + b"public".hex() + LEADERS_HEX + HELPERS_HEX,
    ),
    (
        REPORT,
        UploadedReport(EXTENDED, b"", HELPERS, HELPERS),
        ID.hex()
        + "00" * 8
        + "000a"
        + "0102" + "0002" + b"xy".hex()
        + "0003" + "0000"
        + "00000000" + HELPERS_HEX * 2,
    ),
    (UPLOAD, (), ""),
    (
        UPLOAD,
        (UploadedReport(PLAIN, b"", LEADERS, HELPERS),) * 2,
        (PLAIN_HEX + "00000000" + LEADERS_HEX + HELPERS_HEX) * 2,
    ),
    (
        ERRORS,
        (UploadStatus(ID, ReportError.REPORT_REPLAYED), UploadStatus(OTHER, ReportError(8))),
        ID.hex() + "02" + "00" * 16 + "08",
    ),
    (SHARES, (SHARE,), SHARE_HEX),
    (
        JOB,
        AggregationJobInitReq(b"", SELECTOR, (VerifyInit(SHARE, INITIALIZE.write(b"vv")),)),
        "00000000"
         "02" + "0005" + b"batch".hex()
        + SHARE_HEX + "00000007" + "00" + "00000002" + b"vv".hex(),
    ),
    (
        RESPONSES,
        (
            VerifyResp(ID, FINISH.write(b"")),
            VerifyResp(OTHER, None),
            VerifyResp(ID, ReportError.VDAF_VERIFY_ERROR),
        ),
        ID.hex() + "00" + "00000005" + "02" + "00000000"
        + "00" * 16 + "01"
        + ID.hex() + "02" + "06",
    ),
    (
        AGGREGATE_SHARE_REQ,
        AggregateShareReq(SELECTOR, b"param", 1000, bytes(range(32))),
        "02" + "0005" + b"batch".hex()
        + "00000005" + b"param".hex()
        + "00000000000003e8" + bytes(range(32)).hex(),
    ),
    (INITIALIZE, b"share", "00" + "00000005" + b"share".hex()),
    (FINISH, b"", "02" + "00000000"),
]  # fmt: skip
BEGINNINGS = {id(codec) for codec in (UPLOAD, ERRORS, SHARES, RESPONSES)}
"""What has no end of its own: some of its beginnings are such messages too."""


@pytest.mark.parametrize(("codec", "value", "written"), WRITTEN)
def test_a_message_has_the_bytes_of_the_draft(codec, value, written):
    data = bytes.fromhex(written)
    assert codec.write(value) == data
    assert decoded(codec, data) == value


@pytest.mark.parametrize(("codec", "value", "written"), WRITTEN)
def test_no_part_of_a_message_is_one_and_nothing_comes_after_it(codec, value, written):
    data = bytes.fromhex(written)
    for size in range(len(data)):
        try:
            found = decoded(codec, data[:size])
        except InputError:
            continue
        assert codec is JOB or id(codec) in BEGINNINGS
        assert found != value
    with pytest.raises(InputError):
        decoded(codec, data + b"\x01")


EMPTY = {
    "enc": (CIPHERTEXT, "02" + "0000" + "00000001" + "70"),
    "payload": (CIPHERTEXT, "02" + "0001" + "65" + "00000000"),
    "extensions": (REPORT, ID.hex() + TIME + "0003" + "000100"),
    "error": (ERRORS, ID.hex() + "00"),
    "unknown error": (ERRORS, ID.hex() + "0c"),
    "batch mode": (AGGREGATE_SHARE_REQ, "03" + "0000"),
    "response type": (RESPONSES, ID.hex() + "03"),
    "empty response": (RESPONSES, ID.hex() + "00" + "00000000"),
    "another message": (FINISH, "00" + "00000000"),
}


@pytest.mark.parametrize("what", EMPTY)
def test_what_the_draft_does_not_allow_is_refused(what):
    codec, written = EMPTY[what]
    with pytest.raises(InputError):
        decoded(codec, bytes.fromhex(written))


CODECS = list({id(codec): codec for codec, _, _ in WRITTEN}.values())


@given(codec=st.sampled_from(CODECS), data=st.binary(max_size=200))
def test_any_bytes_are_one_message_or_are_refused(codec, data):
    try:
        found = decoded(codec, data)
    except InputError:
        return
    assert codec.write(found) == data


@given(
    place=st.integers(0, len(WRITTEN) - 1),
    where=st.integers(0, 10_000),
    put=st.binary(min_size=1, max_size=8),
)
def test_a_message_of_which_bytes_were_changed_is_another_one_or_none(place, where, put):
    codec, value, written = WRITTEN[place]
    data = bytearray.fromhex(written)
    where %= len(data) + 1
    data[where : where + len(put)] = put
    try:
        found = decoded(codec, bytes(data))
    except InputError:
        return
    assert codec.write(found) == data
    assert (found == value) == (data == bytes.fromhex(written))


def test_names_are_as_the_draft_has_them():
    assert str(JOB_INIT_REQ) == "application/ppm-dap;message=aggregation-job-init-req"
    assert base64(bytes.fromhex("95ceda51e1a9752368b0d961f9466128")) == "lc7aUeGpdSNosNlh-UZhKA"

"""Which files of tests are to find the mutants of a module: those of its name, and these.

None of `tests/docs` is among them: those compare code with hashes, and fail on any change.
"""

from __future__ import annotations

from tests.layout import files_of

CONTRACT = ("tests/contract/test_contract.py", "tests/contract/test_resume.py")
_COUNTERS = (
    "tests/unit/test_counters.py",
    "tests/unit/test_running.py",
    "tests/unit/test_continual.py",
    "tests/exact/test_continual.py",
    "tests/exact/test_delayed.py",
    "tests/statistical/test_counters.py",
)
_MOMENTS = (
    "tests/unit/test_moment.py",
    "tests/exact/test_moments.py",
    "tests/statistical/test_moments.py",
)
_DEVICES = (
    "tests/unit/test_federated_promise.py",
    "tests/unit/test_federated_task.py",
    "tests/unit/test_device.py",
    "tests/unit/test_federated_collector.py",
    "tests/unit/test_simulation.py",
    "tests/statistical/test_simulation.py",
)
_GATEWAY = ("tests/cluster/test_gateway.py",)
_RELEASES = (
    "tests/cluster/test_releaser.py",
    "tests/cluster/test_announcing.py",
    *_GATEWAY,
)
_COUNTERS_OF = ("accumulator", "delayed", "endless", "factorised", "mechanism", "naive", "running")
_KINDS_OF = ("bits", "count_nonzero", "distributions", "histogram", "mean", "promise", "task")

_OF_MODULE: dict[str, tuple[str, ...]] = {
    "privacy/noise.py": (
        "tests/unit/test_privacy_noise.py",
        "tests/statistical/test_noise.py",
        "tests/exact/test_state_noise.py",
        "tests/contract/test_wiped.py",
    ),
    "privacy/coins.py": (
        "tests/unit/test_privacy_coins.py",
        "tests/unit/test_privacy_noise.py",
        "tests/statistical/test_noise.py",
    ),
    "tables/addressing.py": (
        "tests/unit/test_addressing.py",
        "tests/unit/test_mutants.py",
        "tests/statistical/test_sampling.py",
        "tests/contract/test_wiped.py",
    ),
    "tables/hashing.py": (
        "tests/unit/test_hashing.py",
        "tests/unit/test_addressing.py",
        "tests/unit/test_mutants.py",
    ),
    "tables/cells/protocol.py": (
        "tests/unit/test_cells_bits.py",
        "tests/unit/test_modular.py",
        "tests/unit/test_cropped.py",
        "tests/unit/test_attacks.py",
        *CONTRACT,
    ),
    "tables/cells/bits.py": (
        "tests/unit/test_cells_bits.py",
        "tests/statistical/test_bits.py",
        "tests/exact/test_exact.py",
        "tests/unit/test_planning.py",
        "tests/contract/test_wiped.py",
    ),
    "tables/cells/packed.py": (
        "tests/unit/test_cells_bits.py",
        "tests/unit/test_parity.py",
        "tests/contract/test_declared_state.py",
        "tests/contract/test_wiped.py",
    ),
    "tables/cells/parity.py": (
        "tests/unit/test_parity.py",
        "tests/exact/test_strict.py",
        "tests/contract/test_wiped.py",
    ),
    "tables/cells/difference_sets.py": (
        "tests/unit/test_difference_sets.py",
        "tests/unit/test_law.py",
        "tests/unit/test_planning.py",
    ),
    "tables/cells/law.py": (
        "tests/unit/test_law.py",
        "tests/unit/test_incidence_statistic.py",
        "tests/unit/test_cropped.py",
        "tests/unit/test_planning.py",
        "tests/exact/test_counters.py",
    ),
    "tables/cells/modular.py": (
        "tests/unit/test_modular.py",
        "tests/unit/test_cropped.py",
        "tests/exact/test_counters.py",
        "tests/contract/test_wiped.py",
    ),
    "tables/cells/threshold.py": (
        "tests/unit/test_heavy.py",
        "tests/exact/test_heavy.py",
        "tests/contract/test_wiped.py",
    ),
    "tables/cells/additive.py": _MOMENTS,
    "tables/planning/additive.py": _MOMENTS,
    "statistics/additive_plans.py": _MOMENTS,
    "statistics/moment/plan.py": _MOMENTS,
    "statistics/moment/sizes.py": _MOMENTS,
    "statistics/distinct/strict_plan.py": (
        "tests/exact/test_strict.py",
        "tests/unit/test_parity.py",
        "tests/statistical/test_strict.py",
    ),
    **{f"tables/counters/{name}.py": _COUNTERS for name in (*_COUNTERS_OF, "shapes", "tree")},
    "continual/counter.py": ("tests/unit/test_continual.py", *_COUNTERS),
    "continual/methods.py": ("tests/unit/test_continual.py", *_COUNTERS),
    "statistics/running/stepwise.py": ("tests/unit/test_running.py", *_COUNTERS),
    "statistics/running/nodes.py": ("tests/unit/test_running.py", *_COUNTERS),
    **{f"devices/federated/{name}.py": _DEVICES for name in _KINDS_OF},
    "devices/federated/device.py": ("tests/unit/test_device.py", *_DEVICES),
    "devices/federated/storage.py": ("tests/unit/test_device.py", *_DEVICES),
    "devices/federated/collector.py": ("tests/unit/test_federated_collector.py", *_DEVICES),
    "devices/federated/elgamal.py": ("tests/unit/test_elgamal.py", *_DEVICES),
    "devices/federated/group.py": ("tests/unit/test_group.py", "tests/unit/test_elgamal.py"),
    **{
        f"devices/federated/{name}.py": ("tests/unit/test_shares.py", "tests/exact/test_devices.py")
        for name in ("joint", "shares", "two_servers")
    },
    "devices/federated/every_tick.py": ("tests/unit/test_every_tick.py", *_DEVICES),
    "tables/planning/bits.py": (
        "tests/unit/test_cells_bits.py",
        "tests/unit/test_planning.py",
        "tests/unit/test_windowed.py",
        "tests/exact/test_windows.py",
    ),
    **dict.fromkeys(
        (
            f"privacy/guarantee/{name}.py"
            for name in ("exact", "ledger", "loss", "losses", "promise")
        ),
        (
            "tests/unit/test_guarantee.py",
            "tests/unit/test_windowed.py",
            "tests/unit/test_members.py",
            "tests/unit/test_together.py",
            "tests/unit/test_cells_bits.py",
            "tests/exact/test_windows.py",
            *CONTRACT,
        ),
    ),
    "statistics/statistic.py": (
        "tests/unit/test_specification.py",
        "tests/unit/test_together.py",
        "tests/unit/test_members.py",
        "tests/unit/test_releasing.py",
        "tests/unit/test_grouped.py",
        *CONTRACT,
        "tests/contract/test_wiped.py",
        "tests/contract/test_refused_input.py",
        "tests/contract/test_same_users.py",
        "tests/contract/test_declared_state.py",
        "tests/contract/test_new_statistic.py",
        "tests/contract/test_slices.py",
        "tests/unit/test_explain.py",
        "tests/unit/test_planning.py",
    ),
    "statistics/grid.py": ("tests/unit/test_grid.py",),
    "statistics/composites/windowed.py": (
        "tests/unit/test_windowed.py",
        "tests/exact/test_windows.py",
        "tests/service/test_stream.py",
    ),
    "statistics/composites/together.py": (
        "tests/unit/test_together.py",
        "tests/unit/test_members.py",
        "tests/unit/test_grouped.py",
        "tests/unit/test_merging.py",
        "tests/contract/test_resume.py",
        "tests/contract/test_same_users.py",
        "tests/service/test_stream.py",
    ),
    "tables/ids.py": ("tests/unit/test_ids.py", "tests/contract/test_same_users.py"),
    "ground/sealing.py": ("tests/unit/test_checkpoint.py", "tests/service/test_durability.py"),
    "ground/hygiene/wiping.py": ("tests/unit/test_wiping.py", "tests/contract/test_wiped.py"),
    "tables/decoders/intervals.py": (
        "tests/unit/test_decoders.py",
        "tests/statistical/test_density.py",
    ),
    "statistics/density/decoder.py": (
        "tests/unit/test_decoders.py",
        "tests/statistical/test_density.py",
    ),
    "statistics/distinct/decoder.py": (
        "tests/unit/test_decoders.py",
        "tests/statistical/test_distinct_count.py",
    ),
    "intake/sources/delimited.py": ("tests/unit/test_delimited.py", "tests/unit/test_text.py"),
    "intake/sources/text.py": ("tests/unit/test_text.py", "tests/unit/test_delimited.py"),
    "service/journal.py": ("tests/service/test_journal.py", "tests/service/test_durability.py"),
    "ground/files.py": ("tests/unit/test_mutants.py",),
    "statistics/checkpoint.py": (
        "tests/unit/test_mutants.py",
        "tests/unit/test_checkpoint.py",
        "tests/exact/test_crashes.py",
    ),
    "service/stream.py": (
        "tests/service/test_stream.py",
        "tests/service/test_completeness.py",
        "tests/service/test_moves.py",
        "tests/service/test_contributions.py",
        "tests/service/test_keeper.py",
        "tests/service/test_durability.py",
    ),
    "service/stream_windows.py": (
        "tests/service/test_stream.py",
        "tests/service/test_stream_windows.py",
        "tests/service/test_completeness.py",
        "tests/service/test_moves.py",
        "tests/service/test_contributions.py",
        "tests/service/test_keeper.py",
        "tests/service/test_durability.py",
    ),
    "service/stream_states.py": (
        "tests/service/test_stream.py",
        "tests/service/test_stream_states.py",
        "tests/service/test_announcements.py",
        "tests/service/test_completeness.py",
        "tests/service/test_moves.py",
        "tests/service/test_contributions.py",
        "tests/service/test_keeper.py",
        "tests/service/test_durability.py",
    ),
    "service/releases.py": (
        "tests/service/test_stream.py",
        "tests/service/test_moves.py",
        "tests/service/test_contributions.py",
        "tests/service/test_keeper.py",
        "tests/service/test_durability.py",
    ),
    "service/completeness.py": (
        "tests/service/test_stream.py",
        "tests/service/test_contributions.py",
    ),
    "service/stream_state.py": (
        "tests/service/test_stream.py",
        "tests/service/test_announcements.py",
    ),
    "service/batches.py": (
        "tests/unit/test_mutants.py",
        "tests/service/test_stream.py",
        "tests/service/test_durability.py",
    ),
    "service/outgoing/outbox.py": (
        "tests/service/test_stream.py",
        "tests/service/test_contributions.py",
    ),
    "service/outgoing/payment.py": (
        "tests/service/test_stream.py",
        "tests/service/test_durability.py",
    ),
    "service/outgoing/store.py": (
        "tests/service/test_store.py",
        "tests/service/test_stream.py",
    ),
    "service/outgoing/announcements.py": ("tests/service/test_announcements.py",),
    "service/kept/keeper.py": (
        "tests/service/test_keeper.py",
        "tests/service/test_durability.py",
    ),
    "cluster/coordinator.py": _GATEWAY,
    "cluster/announcing.py": _RELEASES,
    "cluster/asking.py": _RELEASES,
    "cluster/directory.py": ("tests/cluster/test_publisher.py", *_GATEWAY),
    "cluster/engine.py": (
        "tests/cluster/test_cluster.py",
        "tests/cluster/test_counting.py",
        *_GATEWAY,
    ),
    "cluster/gateway.py": _GATEWAY,
    "cluster/publisher.py": ("tests/cluster/test_publisher.py", *_GATEWAY),
    "cluster/record.py": _RELEASES,
    "cluster/releaser.py": _RELEASES,
    "cluster/rounds.py": ("tests/cluster/test_publisher.py", *_GATEWAY),
    "cluster/routing.py": ("tests/cluster/test_routing.py", "tests/cluster/test_messages.py"),
    "cluster/server.py": ("tests/cluster/test_server.py", "tests/cluster/test_cluster.py"),
    "cluster/shard.py": ("tests/cluster/test_shard.py", *_RELEASES),
    "cluster/vault.py": ("tests/cluster/test_vault.py", "tests/cluster/test_worker.py"),
    "cluster/worker.py": ("tests/cluster/test_worker.py",),
}

_EXACTLY_ONCE = (
    *(
        "ground/files.py",
        "statistics/checkpoint.py",
        "devices/federated/storage.py",
        "devices/federated/collector.py",
    ),
    *(
        "service/stream.py",
        "service/stream_windows.py",
        "service/stream_states.py",
        "service/releases.py",
        "service/stream_state.py",
        "service/completeness.py",
        "service/batches.py",
        "service/journal.py",
        "service/outgoing/outbox.py",
        "service/outgoing/payment.py",
    ),
    *("service/outgoing/store.py", "service/outgoing/announcements.py", "service/kept/keeper.py"),
)
_TRUTH = (
    *(
        "tables/ids.py",
        "intake/sources/text.py",
        "intake/sources/delimited.py",
        "tables/decoders/intervals.py",
    ),
    *("statistics/density/decoder.py", "statistics/distinct/decoder.py"),
    *(
        "statistics/grid.py",
        "statistics/composites/windowed.py",
        "statistics/composites/together.py",
    ),
    *("statistics/moment/sizes.py", "tables/counters/factorised.py", "devices/federated/mean.py"),
    *(
        "devices/federated/histogram.py",
        "devices/federated/count_nonzero.py",
        "tables/cells/difference_sets.py",
    ),
)
GROUPS = {
    "privacy": tuple(
        one
        for one in _OF_MODULE
        if one not in {*_EXACTLY_ONCE, *_TRUTH} and not one.startswith("cluster/")
    ),
    "exactly-once": _EXACTLY_ONCE,
    "truth": _TRUTH,
}
"""What a fault in a module would break first: that a user is hidden, that a batch is counted once
whatever is repeated or killed, or that an answer says what it may. Modules of a cluster are drawn
where they are named."""

_OF_ALL = "tests/unit/test_mutants.py"
"""Has what no other test would miss, and that whatever is public cannot be changed."""


def _all(module: str, tests: tuple[str, ...]) -> tuple[str, ...]:
    named = files_of(tuple(part.strip("_") for part in module.removesuffix(".py").split("/")))
    return tuple(dict.fromkeys((*(one for one in named if one not in tests), *tests, _OF_ALL)))


TESTS = {module: _all(module, tests) for module, tests in _OF_MODULE.items()}

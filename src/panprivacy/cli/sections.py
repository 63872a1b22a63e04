"""Layout of the help of a command."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

PLAIN: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}
"""Settings of every `typer.Typer`: no frames, no colours."""


class InSections(TyperCommand):
    """A command whose help has its options under headings."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options of each heading, in the order in which headings come first."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            heading = getattr(parameter, "rich_help_panel", None)
            if record is not None:
                kind = f"{parameter.param_type_name.capitalize()}s"
                sections.setdefault(heading or kind, []).append(record)
        for heading, records in sections.items():
            with formatter.section(heading):
                formatter.write_dl(records)

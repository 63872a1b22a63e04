"""Layout of the help of a command."""

from __future__ import annotations

from collections import Counter
from typing import Any

from typer.core import TyperCommand, TyperGroup

PLAIN: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,
}
"""Settings of every `typer.Typer`: no frames, no colours."""


def refuse_repeated(command: Any, ctx: Any, args: list[str]) -> None:
    """Raise an error if an option that has one value is there several times: all but one are lost.

    Args:
        command: the command, or the group of commands.
        ctx: its context.
        args: its arguments.
    """
    if ctx.resilient_parsing:  # a shell completes what is not complete
        return
    *_, order = command.make_parser(ctx).parse_args(args=[*args])
    for parameter, times in Counter(order).items():
        if times > 1 and parameter.param_type_name == "option" and not parameter.multiple:
            name = parameter.opts[0]
            message = f"{name} is there {times} times: give it once"
            if "," in (parameter.metavar or ""):
                message += f", as {name} {parameter.metavar}"
            ctx.fail(message)


class OnceEach(TyperGroup):
    """A group of commands that refuses an option of its own that is there twice."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)


class InSections(TyperCommand):
    """A command whose help has its options under headings."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments, and refuse an option that is there twice and has one value."""
        refuse_repeated(self, ctx, args)
        return super().parse_args(ctx, args)

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

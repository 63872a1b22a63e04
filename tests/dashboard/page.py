"""A page without a browser: elements that say what they are, and do what a browser would."""

from __future__ import annotations

from types import SimpleNamespace


class Element:
    """What was made on a page."""

    def __init__(self, page, tag, text=""):
        self.page, self.tag, self.text = page, tag, text
        self.props, self.styles, self.children, self.handlers = {}, set(), [], {}
        self.options, self.updates, self.id, self.is_open = {}, 0, 7, False
        page.stack[-1].children.append(self)

    def __enter__(self):
        self.page.stack.append(self)
        return self

    def __exit__(self, *_):
        self.page.stack.pop()

    def classes(self, add="", *, remove=""):
        self.styles = (self.styles | set(add.split())) - set(remove.split())
        return self

    def style(self, text):
        self.css = text
        return self

    def on(self, event, handler, js_handler=None):
        self.handlers[event] = handler
        return self

    def emit(self, event, args=None):
        return self.handlers[event](*([SimpleNamespace(args=args)] if args is not None else []))

    def set_text(self, text):
        self.text = text

    def clear(self):
        self.children.clear()

    def open(self):
        self.is_open = True

    def close(self):
        self.is_open = False

    def update(self):
        self.updates += 1

    def all(self, tag=None, style=None):
        """Whatever is in it, and fits."""
        found = [one for child in self.children for one in (child, *child.all())]
        return [
            one
            for one in found
            if tag in {None, one.tag} and (style is None or style in one.styles)
        ]

    @property
    def said(self):
        """All texts, in order."""
        return [one.text for one in self.all() if one.text.strip()]


class Page:
    """Stands in for `nicegui.ui`."""

    def __init__(self):
        self.stack = [SimpleNamespace(children=[])]
        self.root = Element(self, "root")
        self.stack = [self.root]
        self.scripts, self.timers, self.gone, self.routes, self.head, self.title = (
            [],
            [],
            [],
            {},
            "",
            "",
        )
        self.navigate = SimpleNamespace(to=self.gone.append)
        request = SimpleNamespace(headers={}, scope={"root_path": ""})
        self.request = request
        client = SimpleNamespace(request=request, content=SimpleNamespace(clear=self.root.clear))
        self.context = SimpleNamespace(client=client)

    def element(self, tag):
        return Element(self, tag)

    def dialog(self):
        return Element(self, "dialog")

    def echart(self, options, renderer):
        made = Element(self, "chart")
        made.options = options
        return made

    def run_javascript(self, code):
        self.scripts.append(code)

    def timer(self, seconds, work, *, once=False):
        self.timers.append((seconds, work, once))

    def add_head_html(self, text):
        self.head = text

    def page_title(self, text):
        self.title = text

    def page(self, path):
        return lambda made: self.routes.update({path: made})

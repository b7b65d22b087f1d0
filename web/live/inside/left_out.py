"""Imports that a page leaves out: their names stand for an error, which says why."""

import ast


class LeftOut:
    """What a name stands for that a page cannot import. Using it raises an ImportError."""

    def __init__(self, name, why):
        vars(self).update(_name=name, _why=why)

    def __repr__(self):
        return f"<{self._name} is not on this page>"

    def __getattr__(self, attribute):
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        raise ImportError(f"{self._name} is not on this page. {self._why}", name=self._name)

    def __call__(self, *arguments, **options):  # noqa: ARG002
        return self.used


def without(tree, lacks):
    """Remove the imports of names from a syntax tree; return {name: what it stands for}.

    lacks: {name: why a page cannot import it}.
    """
    found = {}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            gone = [one for one in node.names if (one.asname or one.name.split(".")[0]) in lacks]
            found |= {name: LeftOut(name, lacks[name]) for name in (one.asname or one.name for one in gone)}
            node.names = [one for one in node.names if one not in gone]
    tree.body = [node for node in tree.body if getattr(node, "names", True)]
    return found

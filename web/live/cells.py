"""What a page knows about the code cells of its chapter: the names that link them, and what they lack there.

A cell cannot run on a page if it uses what a page lacks, such as processes, if it checks an exercise whose
solution does, if it is tagged `slow`, or if it needs a cell that cannot run. A cell that imports several modules
runs without those that a page lacks, and the cells that use them cannot run.
"""

import ast
import re

from flashlib.checks.engine import solutions
from tools.notebooks import tags
from web.live import lacking
from web.live.inside import needs

SLOW = "This cell takes too long to run in a page."  # more than a few seconds
CARD = re.compile(r'checks\.predict\("(\w+)"\)\s*')
PROGRESS_CALL = "checks.progress()"
CHECK = re.compile(r"^checks\.(\w+)\(")


def of_chapter(cells, kernels=False):
    """Return what a page needs to know about each code cell, in order.

    id; names: its Names as lists; imports: names; missing: what it needs that a page lacks, in words, or "";
    lacks: {name: why} of what it imports elsewhere and not on a page.

    kernels: whether the page has Triton's interpreter.
    """
    code = [cell for cell in cells if cell.cell_type == "code" and cell.source.strip()]
    names = needs.all_names([cell.source for cell in code])
    aliases = {name: module for cell in code for name, module in _aliases(ast.parse(cell.source)).items()}
    missing, lacks = [], {}
    without = []
    for cell, of_cell in zip(code, names, strict=True):
        own = {name: sentence(why) for name, why in lacks_of(cell.source, kernels).items()}
        why = SLOW if "slow" in tags(cell) else missing_of(cell.source, kernels, aliases)
        missing.append(why or next((lacks[name] for name in sorted(of_cell.taken & {*lacks})), ""))
        without.append({} if missing[-1] else own)
        lacks = {name: why for name, why in lacks.items() if name not in of_cell.given} | own
    missing = _handed_on(missing, names)
    checked = {
        found[1]: what for cell, what in zip(code, missing, strict=True) if (found := CHECK.match(cell.source))
    }
    for number, cell in enumerate(code):  # nothing is written where nothing can check it
        missing[number] = missing[number] or checked.get(exercise_of(cell), "")
    missing = _handed_on(missing, names)
    return [
        {
            "id": cell.id,
            "names": [sorted(part) for part in (needs.without_drawing(of_cell) if what else of_cell)],
            "imports": sorted(needs.imported(cell.source)),
            "missing": what,
            "lacks": own,
        }
        for cell, of_cell, what, own in zip(code, names, missing, without, strict=True)
    ]


def of_page(chapter, cells, has_kernels):
    """Return what `of_chapter` returns, and whether the page needs what kernels need.

    has_kernels: whether the site has Triton's interpreter, for the chapters that need Triton.
    """
    told = of_chapter(cells)
    if not (has_kernels and "triton" in chapter.needs + chapter.more_needs):
        return told, False
    more = of_chapter(cells, kernels=True)
    gains = len(running(cells, more)) > len(running(cells, told))
    return (more, True) if gains else (told, False)


def sentence(why):
    """Return why a cell cannot run, in a sentence."""
    return f"This cell needs {why}."


def _handed_on(missing, names):
    """Return what each cell lacks, itself or in a cell that it needs for more than to draw numbers after it."""
    missing, names = list(missing), [needs.without_drawing(one) for one in names]
    for number in range(len(missing)):
        needed = sorted(needs.needed(names, number))
        missing[number] = next(filter(None, [missing[number], *(missing[k] for k in needed)]), "")
    return missing


def exercise_of(cell):
    """Return the name of the exercise whose stub a cell is, "" if it is none."""
    return next((tag.partition(":")[2] for tag in tags(cell) if tag.startswith("stub:")), "")


def running(cells, told):
    """Return the cells that a reader can run on the page: not the cards, which play by themselves.

    None, if they would only import. told: what `of_chapter` returns for the cells.
    """
    lacks = {one["id"] for one in told if one["missing"]}
    code = [cell for cell in cells if cell.cell_type == "code" and cell.source.strip() and cell.id not in lacks]
    code = [cell for cell in code if not CARD.fullmatch(cell.source) and not cell.source.endswith(PROGRESS_CALL)]
    return [] if all(_only_imports(cell.source) for cell in code) else code


def missing_of(source, kernels=False, aliases=None):
    """Return what code needs that a page does not have, in a sentence, or "".

    A check needs what the solution does. aliases: {name: module} of what other cells import.
    """
    tree = ast.parse(source)
    check = CHECK.match(source)
    modules = _of_solution(check[1]) if check and check[1] in solutions.names() else []
    modules += [module for node in tree.body if not _is_import(node) for module in lacking.imports(node, True)]
    found = next(filter(None, (lacking.of_module(module, kernels) for module in modules)), "")
    return sentence(found) if found else _of_uses(tree, kernels, (aliases or {}) | _aliases(tree))


def _of_uses(tree, kernels, aliases):
    """Return what code uses that a page does not have, in a sentence, or ""."""
    lacks = _lacks(tree, kernels)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    if lacks and (used & {*lacks} or all(_is_import(node) and not _kept(node, lacks) for node in tree.body)):
        return sentence(next(iter(lacks.values())))
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (asked := lacking.ASKED.get(ast.unparse(node.func).split(".")[-1])):
            return sentence(asked)
        if kernels and (found := _of_torch(node, aliases)):
            return sentence(found)
    return ""


def _of_torch(node, aliases):
    """Return what part of an expression the stand-in for torch lacks, in words, or ""."""
    match node:
        case ast.keyword(arg="requires_grad") | ast.Attribute(attr="requires_grad_" | "requires_grad"):
            return lacking.GRADIENTS
        case ast.Call(func=ast.Attribute(value=value, attr="backward")) if ast.unparse(value) not in aliases:
            return lacking.GRADIENTS
        case ast.Attribute():
            name, _, rest = ast.unparse(node).partition(".")
            module = f"{aliases.get(name, '')}.{rest}"
            if module.startswith("torch.") and re.fullmatch(r"[\w.]+", rest):
                return lacking.of_module(module, kernels=True)
    return ""


def lacks_of(source, kernels=False):
    """Return {name: why} of what the code imports at its top, and a page lacks."""
    return _lacks(ast.parse(source), kernels)


def _lacks(tree, kernels):
    of_top = [one for node in tree.body for one in lacking.bound(node)]
    return {name: why for name, module in of_top if (why := lacking.of_module(module, kernels))}


def _aliases(tree):
    return dict(one for node in tree.body for one in lacking.bound(node))


def _only_imports(source):
    return all(map(_is_import, ast.parse(source).body))


def _is_import(node):
    return isinstance(node, ast.Import | ast.ImportFrom)


def _kept(node, lacks):
    """Return whether an import statement imports something that is not in `lacks`."""
    return any(name not in lacks for name, _ in lacking.bound(node))


def _of_solution(exercise):
    """Return the modules that the solution of an exercise needs: of imports under a condition, those it uses."""
    tree, head = ast.parse(solutions.program(exercise).source), ast.parse(solutions.imports(exercise))
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found = list(lacking.imports(head))
    for node in ast.walk(head):
        if isinstance(node, ast.Import) and node not in head.body:
            found += [one.name for one in node.names if (one.asname or one.name).split(".")[0] in used]
    return found

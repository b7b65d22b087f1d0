"""How the modules of a widget are joined into one script."""

import pytest

from flashlib.widgets import modules


@pytest.fixture
def written(tmp_path):
    """A function that writes modules, {name: text}, and joins the first of them."""

    def join(texts):
        for name, text in texts.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return modules.join(tmp_path / next(iter(texts)))

    return join


def test_each_module_comes_once_after_those_that_it_imports(written):
    text = written(
        {
            "lab/lab.js": '// The lab.\n\nimport { A } from "./a.js";\nimport {\n  b,\n  c,\n} from "../b.js";\n'
            "\nclass Lab extends A {}\nexport default b(c);\n",
            "lab/a.js": 'import { b } from "../b.js";\nexport class A {\n  x = b;\n}\n',
            "b.js": "export const c = 1;\n/**\n * B.\n * @param {number} x\n */\nexport function b() {}\n"
            "const own = 2; /** stays */\n",
        }
    )
    b = "const c = 1;\nfunction b() {}\nconst own = 2; /** stays */\n"
    a = "class A {\n  x = b;\n}\n"
    assert text == "\n".join([b, a, "// The lab.\n\nclass Lab extends A {}\nexport default b(c);\n"])


ONE, TWO = "export const one = 1;\n", 'import { one } from "./1.js";\n'


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (['import { two } from "./1.js";\n', ONE], "0.js imports two from .*1.js, which does not export it"),
        ([TWO, "const one = 1;\n"], "which does not export it"),
        (['import { one } from "./2.js";\n'], "0.js imports .*2.js, which is not there"),
        ([TWO + "const one = 2;\n", ONE], "0.js and .*1.js both declare one"),
        (
            ['import { one } from "./1.js";\n', 'import { x } from "./0.js";\n' + ONE],
            "0.js imports itself",
        ),
        (
            ['import { one } from "./1.js";\n', ONE + "export default one;\n"],
            "1.js is imported, so it cannot have",
        ),
        (['import one from "./1.js";\n', ONE], "cannot join 'import one from"),
        (['import { one as two } from "./1.js";\n', ONE], "0.js imports one as two from"),
        (["const one = 1;\nexport { one };\n"], r"cannot join 'export \{ one \};'"),
    ],
)
def test_modules_that_cannot_be_joined_are_refused(written, texts, message):
    with pytest.raises(ValueError, match=message):
        written({f"{k}.js": text for k, text in enumerate(texts)})

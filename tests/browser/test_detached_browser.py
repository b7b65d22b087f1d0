"""A browser that playwright leaves and returns to, with reports of what ran in between."""

import pytest

from tests.browser.lab import SIZE
from tools import detached_browser

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def browser(playwright, tmp_path_factory):
    with detached_browser.chromium(playwright, tmp_path_factory.mktemp("browser")) as browser:
        yield browser


def run(browser, script, asked=None, timeout=10):
    return browser.run(script, asked, pause=300, timeout=timeout)


def test_the_value_of_a_function_is_returned(browser):
    page = browser.page
    script = "async ({ a }) => { await new Promise((done) => setTimeout(done, 100)); return [2 * a, innerWidth]; }"
    doubled, _ = run(browser, script, {"a": 21})
    assert doubled == 42
    assert page.is_closed(), "nothing was attached through it"
    assert browser.page.evaluate("() => [innerWidth, innerHeight]") == [SIZE["width"], SIZE["height"]]


def test_an_exception_is_raised(browser):
    with pytest.raises(detached_browser.Failed, match="^too late$"):
        run(browser, "() => { throw Error('too late'); }")
    assert run(browser, "() => 'and it goes on'") == "and it goes on"


def test_a_slow_function_is_waited_for(browser):
    script = "() => new Promise((done) => setTimeout(() => done('late'), 2000))"
    assert run(browser, script, timeout=0.5) == "late"


def test_its_requests_are_known(browser):
    assert browser.requests == []
    run(browser, "() => fetch('http://127.0.0.1:9/nobody').catch(() => null)")
    assert browser.requests == ["http://127.0.0.1:9/nobody"]

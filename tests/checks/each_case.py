"""One test for many cases of a line or two each: as separate tests, most of their time would be pytest's."""


def each_case(cases, name):
    """Return a decorator: the test calls the function with each case, and reports all failures by name(case)."""

    def decorate(check):
        def test():
            failed = []
            for case in cases:
                try:
                    check(case)
                except Exception as error:
                    failed.append(f"{name(case)}: {type(error).__name__}: {error}")
            assert not failed, f"{len(failed)} of {len(cases)} fail\n" + "\n\n".join(failed)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate

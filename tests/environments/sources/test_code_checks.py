"""Source code is judged without being run."""

from envsched.environments.sources.code_checks import class_problem, function_problem, signature_problems

INHERITED = "class Base:\n    def get(self): ...\nclass Shop(Base):\n    def add(self): ...\n"


def test_methods_of_bases_count() -> None:
    assert class_problem(INHERITED, "Shop", ["get", "add"]) is None
    assert class_problem(INHERITED, "Base", ["add"]) == ("tools", "add", "methods of Base in env_class_code")


def test_bases_from_elsewhere_may_define_anything() -> None:
    assert class_problem("import abc\nclass Shop(abc.ABC): ...", "Shop", ["get"]) is None
    assert class_problem("class Shop(Shop): ...", "Shop", ["get"]) is not None


def test_nothing_runs() -> None:
    assert function_problem("raise SystemExit\ndef check_func(final_state): ...", "check_func") is None
    assert class_problem("raise SystemExit\nclass Shop: ...", "Shop", []) is None


def test_code_that_does_not_compile() -> None:
    for code in ("def check_func(:", "\0", "return 1", "(" * 1000, "def check_func(x):\n\tx\n        x"):
        found, expected = function_problem(code, "check_func") or ("", "")
        assert (bool(found), expected) == (True, "Python source")


SHOP = """
class Base:
    def shared(self, a, b=1): ...


class Shop(Base):
    def sell(self, item, *, price, note=None): ...
    def anything(self, first, **rest): ...

    @staticmethod
    def count(items): ...
"""


def schema(*names: str) -> dict[str, object]:
    return {"type": "object", "properties": {name: {} for name in names}}


def test_schemas_that_fit_their_methods_pass() -> None:
    fitting = {
        "shared": schema("a"),
        "sell": schema("item", "price", "note"),
        "anything": schema("first", "colour"),
        "count": schema("items"),
        "inherited_from_elsewhere": schema("x"),
    }
    assert signature_problems(SHOP, "Shop", fitting) == {}


def test_what_schemas_and_methods_differ_in_is_told() -> None:
    wrong = {
        "shared": schema("b"),
        "sell": schema("item", "price", "colour", "self"),
        "anything": schema(),
        "count": schema("items", "more"),
    }
    assert signature_problems(SHOP, "Shop", wrong) == {
        "shared": "shared needs a, which its schema lacks",
        "sell": "its schema has colour, self, which sell does not take",
        "anything": "anything needs first, which its schema lacks",
        "count": "its schema has more, which count does not take",
    }

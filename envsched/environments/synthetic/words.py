"""The entities of all environments: common single words, each in one pool only."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


PEOPLE = _words(
    "anna ben carl dora emma finn gina hugo iris jack kate leo mia nora omar paul rosa sam tina vera"
)
PLACES = _words("attic barn cabin cellar dock garage hall harbor lab lobby office porch roof shed tower yard")
THINGS = _words(
    "bell box camera chair clock desk drum fan flag guitar kite knife lamp mirror piano radio table tent"
)
ANIMALS = _words("bear crow deer eagle fox goat horse lion owl rabbit swan tiger wolf zebra")
FOODS = _words("apple bean bread cheese corn egg fish honey lemon mint onion pear rice salt soup tomato")
TOPICS = _words("art chess gold health history law music news ocean peace space sport travel war winter")
COLORS = _words("black blue brown gray green orange pink red white yellow")
DAYS = _words("monday tuesday wednesday thursday friday saturday sunday")
DIGITS = tuple(range(1, 10))
TENS = tuple(range(10, 100, 10))

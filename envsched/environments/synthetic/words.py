"""The entities of all environments: common single words, each in one pool only."""

PEOPLE = tuple(
    "anna ben carl dora emma finn gina hugo iris jack kate leo mia nora omar paul rosa sam tina vera".split()
)
PLACES = tuple(
    "attic barn cabin cellar dock garage gate hall harbor lab lobby office porch roof shed studio tower yard".split()
)
THINGS = tuple(
    "bell book box camera chair clock cup desk drum fan flag guitar kite knife lamp mirror "
    "piano radio rope table tent vase".split()
)
ANIMALS = tuple("bear crow deer eagle fox goat horse lion owl rabbit swan tiger wolf zebra".split())
FOODS = tuple(
    "apple bean bread cheese corn egg fish honey lemon mint onion pear rice salt soup tomato".split()
)
TOPICS = tuple(
    "art chess food gold health history law music news ocean peace space sport travel war winter".split()
)
COLORS = tuple("black blue brown gray green orange pink red white yellow".split())
DAYS = tuple("monday tuesday wednesday thursday friday saturday sunday".split())
DIGITS = tuple(range(1, 10))
TENS = tuple(range(10, 100, 10))

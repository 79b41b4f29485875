"""One module a family; a new family is a new module and its name here."""

from envsched.environments.synthetic.families import (
    bank,
    clinic,
    fleet,
    home,
    kitchen,
    library,
    mail,
    shop,
    warehouse,
)

FAMILIES = tuple(
    module.FAMILY for module in (bank, clinic, fleet, home, kitchen, library, mail, shop, warehouse)
)

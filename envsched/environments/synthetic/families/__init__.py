"""One module a family; a new family is a new module and its name here."""

from envsched.environments.synthetic.families import bank, warehouse

FAMILIES = (warehouse.FAMILY, bank.FAMILY)

"""Which plural forms a language has in gettext catalogues, and which number of things a form is for.

The rules are those of the Unicode CLDR for whole numbers, in the form in which gettext writes them.
"""

import gettext
import re
from collections.abc import Callable
from typing import NamedTuple

_RULES = {
    "nplurals=1; plural=0;": "id ja ka ko lo ms th vi zh",
    "nplurals=2; plural=(n != 1);": (
        "af an ast az bg bn ca da de el en eo es et eu fi fo fur fy gl gu ha he hu hy ia is it kk kn ku ky lb mk ml mn "
        "mr nb ne nl nn no pa pap ps pt rm sq sv sw ta te tk tr ug ur uz yo"
    ),
    "nplurals=2; plural=(n > 1);": "ach ak am arn br fa fil fr gun hi ln mfe mg mi oc pt_br si tg ti tl wa",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);": (
        "be bs hr ru sr uk"
    ),
    "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);": "pl",
    "nplurals=3; plural=(n==1 ? 0 : n>=2 && n<=4 ? 1 : 2);": "cs sk",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2);": "lt",
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2);": "lv",
    "nplurals=3; plural=(n==1 ? 0 : n==0 || (n%100>0 && n%100<20) ? 1 : 2);": "ro",
    "nplurals=4; plural=(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3);": "sl",
    "nplurals=5; plural=(n==1 ? 0 : n==2 ? 1 : n<7 ? 2 : n<11 ? 3 : 4);": "ga",
    "nplurals=6; plural=(n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5);": "ar",
}
_BY_LANGUAGE = {language: rule for rule, languages in _RULES.items() for language in languages.split()}
_HEADER = re.compile(r"nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;]{1,500})")
_NUMBERS = range(201)  # every rule of the CLDR for whole numbers repeats after 100


class PluralForms(NamedTuple):
    """How many forms a language has, and the form for a number."""

    nplurals: int
    form: Callable[[int], int]

    def numbers(self, form: int) -> list[int]:
        """The numbers up to 200 that take a form."""
        return [n for n in _NUMBERS if self.form(n) == form]


def plural_rule(language: str) -> str | None:
    """The `Plural-Forms` of a language (`it`, `pt_BR`), or None if it is not known here."""
    code = language.lower().replace("-", "_")
    return _BY_LANGUAGE.get(code) or _BY_LANGUAGE.get(code.partition("_")[0])


def parse_plural_forms(header: str) -> PluralForms | None:
    """What a `Plural-Forms` field says, or None if that is not a rule (a template has "plural=EXPRESSION")."""
    match = _HEADER.search(header)
    if match is None:
        return None
    try:
        forms = PluralForms(int(match[1]), gettext.c2py(match[2]))
        correct = all(0 <= forms.form(n) < forms.nplurals for n in _NUMBERS)
    except (ValueError, ZeroDivisionError, OverflowError, RecursionError):
        return None
    return forms if correct else None

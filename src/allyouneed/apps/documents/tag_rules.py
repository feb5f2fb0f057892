"""What whoever sends a text with tags says about them, besides what their names mean in HTML."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TagRules:
    """Rules for tags by their names; of two rules for one name the first here counts.

    The content of `ignored` tags stays as it is. A sentence ends at `splitting` tags, and does not at `non_splitting`
    ones. With `outline` off, a sentence in XML ends at no tags but the `splitting` ones.
    """

    ignored: frozenset[str] = frozenset()
    splitting: frozenset[str] = frozenset()
    non_splitting: frozenset[str] = frozenset()
    outline: bool = True

    def for_html(self) -> "TagRules":
        """The same for names in lower case, as those of HTML are compared."""

        def lower(names: Iterable[str]) -> frozenset[str]:
            return frozenset(name.lower() for name in names)

        return TagRules(lower(self.ignored), lower(self.splitting), lower(self.non_splitting), self.outline)


NO_RULES = TagRules()

"""Markdown beyond CommonMark, as the programs write it that show it: what is between ⟨ and ⟩ is translated, no more."""

import re
from itertools import pairwise

import pytest

from allyouneed.apps.documents.markdown_inline import make_parser, without_markers
from document_checks import assert_identity, translated
from fake_translator import FakeTranslator

PAGES = {
    "alerts of GitHub and Obsidian": """\
> [!WARNING]
> ⟨close the file
> before it is lost⟩

> [!info]- ⟨a title⟩
> ⟨and *a* text⟩

> ⟨a plain
> quotation⟩
""",
    "containers": """\
⟨before⟩
::: warning
⟨one line
and another⟩
:::
:::: group
::: tip ⟨the title⟩ {open}
- ⟨an item⟩
- ⟨another⟩
:::
:::danger[⟨a **title**⟩]{.c #i}
⟨text⟩
:::
::::
::: {.note title="x"}
## ⟨a heading⟩
:::
- ⟨an item⟩

  ::: demo x.vue
  ⟨inside⟩
  :::
:::image type="content" source="a.png":::
/// details | ⟨a title⟩
⟨text⟩
///
:::{note}
:class: tip
:name: a
⟨the text⟩
:::
""",
    "admonitions and tabs of MkDocs": """\
!!! note "⟨the *title*⟩"
    ⟨the text
    of it⟩

    ⟨more text⟩

    - ⟨an item⟩
??? tip
    ⟨folded⟩
???+ tip inline end "⟨open⟩"

    ⟨text⟩

=== "⟨a tab⟩"
    ⟨text⟩

    ```
    code
    ```
=== "⟨another⟩"

    ⟨text⟩

!!! ⟨do not do this !!!⟩
""",
    "definitions": """\
⟨cache⟩
: ⟨a place for files
  that are used again⟩

⟨log⟩
:   ⟨what it did⟩

    ⟨in more words⟩
:   ⟨another meaning⟩

⟨a term⟩
⟨another term⟩
: ⟨a definition⟩
""",
    "lines with a sign": "| ⟨a line⟩\n| ⟨another⟩\n\n• ⟨one⟩\n• ⟨two⟩\n\n- [ ] ⟨a task⟩\n",
    "formulas": """\
⟨a formula⟩
$$
a = b
- c
$$
⟨so $a_1 * b$ and $x$ is \\(a_b\\) or \\(x\\), and $$a_c$$ is 5⟩
\\[
a
\\]
\\begin{align}
a &= b
\\end{align}
\\newpage
""",
    "templates of Hugo and Jekyll": """\
{{< note >}}
⟨the text of *it*⟩
{{< /note >}}
{{< figure
  src="a.png"
  caption="b"
>}}
{% raw %}
⟨see [the page]({% link a b.md %}), [another]({{< ref "a" >}}) and {{ a.b }}{% c %} here⟩
{% endraw %}
{% highlight x %}
def foo
  bar

end
{% endhighlight %}
⟨a paragraph⟩
{: .class }
""",
    "attributes": """\
# ⟨a title⟩ {#id}

⟨![a picture](a.png){: width=50%} and **bold**{.a} with `c`{.d} and [a span]{.e} then [a link](f){g=h}⟩
""",
    "components of MDX": """\
import a, {b} from '@c/d';
import {
  e,
} from "./f";

export const x = ({children}) => (
  <b style={{color}}>{children}</b>
);

⟨text⟩
<Tabs values={[{label: 'a', value: 'b'}]}>
⟨text⟩
</Tabs>
<Card
  title="a"
/>
{/* a comment */}
⟨press <Key of={a b}>the key</Key> now⟩
""",
    "notes": """\
⟨a text[^a] with^[a note *in* it] a note⟩

[^a]: ⟨one note⟩
[^b]: ⟨another
    note⟩

    ⟨of two paragraphs⟩
""",
    "links of wikis": "⟨see [[a page]], [[a|b]] or ![[c.png]]⟩\n[[_TOC_]]\n⟨and [[one]](b)⟩\n",
    "others": """\
[TOC]
⟨text⟩
*[HTML]: ⟨a language⟩
*[CSS]: ⟨another⟩
⟨press {kbd}`a` as {ref}`b` :tada: say [@c, p. 3]⟩
+---+---+
| a | b |
+---+---+
--8<-- "a.md"
<<< @/a.js{2}
@[code](a)
[!INCLUDE [a](b.md)]
⟨text⟩
""",
    "front matter": '{\n  "a": "b"\n}\n⟨text⟩\n',
}
KEPT = re.compile(
    r"""\$\$?[^$\n]+\$|\\\(.*?\\\)|!?\[\[[^\[\]]+\]\](?!\()|\{[^\n]*?\}(?:`[^`]*`|\}|[{%]*)|`[^`]*`|\]\([^)\n]*\)|:tada:
    |\[@[^\]]*\]|\[\^.\]|<[^>\n]*>""",
    re.VERBOSE,
)
MARKED = re.compile("⟨(.*?)⟩", re.DOTALL)


def build_page(marked: str) -> str:
    return re.sub("[⟨⟩]", "", marked)


def capitals(match: re.Match[str]) -> str:
    """Put the text between the signs on one line, in capitals."""
    text = re.sub(r"\n[ \t>]*", " ", match[1])
    ends = [0, *(at for kept in KEPT.finditer(text) for at in kept.span()), len(text)]
    parts = [text[start:end] for start, end in pairwise(ends)]
    return "".join(part if number % 2 else part.upper() for number, part in enumerate(parts))


@pytest.mark.parametrize("marked", PAGES.values(), ids=PAGES)
def test_texts_are_translated_and_markers_keep_their_lines(marked: str) -> None:
    page = build_page(marked)
    assert_identity(page.encode(), "md")
    assert_identity(page.replace("\n", "\r\n").encode(), "md")
    assert translated(page.encode(), "md").decode() == MARKED.sub(capitals, marked)


@pytest.mark.parametrize("marked", PAGES.values(), ids=PAGES)
def test_another_order_of_words_keeps_the_blocks_of_the_page(marked: str) -> None:
    page = build_page(marked)
    result = translated(page.encode(), "md", FakeTranslator(reverse=True)).decode()
    assert blocks(result) == blocks(page)


def blocks(page: str) -> list[tuple[str, int]]:
    return [(token.type, token.level) for token in make_parser().parse(without_markers(page))]

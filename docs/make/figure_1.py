"""Figure 1 of the paper as a map of the walk: every box leads to its page, and one says "you are here"."""

from drawing import BLUE, GREEN, ORANGE, PURPLE, Drawing

PAGES = {
    "1-embedding": "Embedding",
    "2-position": "Position",
    "3-attention": "Attention",
    "4-heads": "Many heads",
    "5-masks": "Masks",
    "6-feed-forward": "Feed-forward network",
    "7-add-and-norm": "Add & norm",
    "8-encoder-and-decoder": "Encoder and decoder",
    "9-projection": "Projection",
    "10-learning": "Learning",
    "11-decoding": "Decoding",
}
COLOURS = {
    "1-embedding": PURPLE,
    "2-position": PURPLE,
    "3-attention": ORANGE,
    "4-heads": ORANGE,
    "5-masks": ORANGE,
    "6-feed-forward": BLUE,
    "7-add-and-norm": GREEN,
    "8-encoder-and-decoder": "",
    "9-projection": PURPLE,
    "10-learning": BLUE,
    "11-decoding": BLUE,
}
WIDTH, LEFT, RIGHT = 170, 54, 304  # of a box; where the encoder's and the decoder's boxes begin


def figure_1(here: str = "") -> Drawing:
    """Draw the map, with the boxes of the page `here` emphasized."""
    title = "Figure 1 of the paper: the Transformer"
    picture = Drawing(520, 640, f"{title}. You are at: {PAGES[here]}" if here else title)

    def box(page: str, x: float, y: float, text: str, *, width: float = WIDTH, height: float = 28) -> None:
        picture.open_link(f"{page}.html", PAGES[page])
        picture.box(x, y, width, height, text, colour=COLOURS[page], strong=page == here)
        picture.close_link()

    def attention(x: float, y: float, *, masked: bool) -> None:
        """Draw a box of three pages: many heads, in it one attention, and on it the mask."""
        picture.open_link("4-heads.html", PAGES["4-heads"])
        picture.box(x, y, WIDTH, 56, colour=COLOURS["4-heads"], strong=here == "4-heads")
        picture.text(x + (118 if masked else WIDTH / 2), y + 15, "multi-head", bold=here == "4-heads")
        picture.close_link()
        box("3-attention", x + 25, y + 27, "attention", width=WIDTH - 50, height=24)
        if masked:
            box("5-masks", x + 6, y + 3, "masked", width=62, height=20)

    def sublayer(x: float, y: float, height: float) -> None:
        """Draw the arrow into a sublayer at y, the arrow on to its norm, and the residual connection around it."""
        middle, side = x + WIDTH / 2, x - 9
        picture.arrow((middle, y + height + 22), (middle, y + height))
        picture.arrow((middle, y), (middle, y - 14))
        picture.arrow((middle, y + height + 12), (side, y + height + 12), (side, y - 28), (x, y - 28))

    def block(x: float, top: float, bottom: float, text: str, text_x: float, text_y: float) -> None:
        box("8-encoder-and-decoder", x - 18, top, "", width=WIDTH + 36, height=bottom - top)
        picture.text(text_x, text_y, text, anchor="start", bold=here == "8-encoder-and-decoder")

    block(LEFT, 262, 482, "N× encoder", LEFT - 18, 250)
    block(RIGHT, 142, 482, "N× decoder", RIGHT - 112, 156)
    for x, name in ((LEFT, "source"), (RIGHT, "target so far")):
        middle = x + WIDTH / 2
        picture.text(middle, 626, name)
        picture.arrow((middle, 616), (middle, 598))
        box("1-embedding", x, 570, "embedding")
        picture.arrow((middle, 570), (middle, 544))
        box("2-position", x, 516, "+ position")
        picture.arrow((middle, 516), (middle, 480))
    for x, y in ((LEFT, 402), (RIGHT, 402), (RIGHT, 284)):
        attention(x, y, masked=(x, y) == (RIGHT, 402))
        sublayer(x, y, 56)
    for x, y in ((LEFT, 312), (RIGHT, 192)):
        box("6-feed-forward", x, y, "feed-forward")
        sublayer(x, y, 28)
    for x, y in ((LEFT, 360), (RIGHT, 360), (RIGHT, 242), (LEFT, 270), (RIGHT, 150)):
        box("7-add-and-norm", x, y, "add & norm")
    # The memory: from the encoder's last block to the cross-attention of every block of the decoder.
    picture.arrow((LEFT + WIDTH / 2, 270), (LEFT + WIDTH / 2, 232), (262, 232), (262, 298), (RIGHT, 298))
    picture.text(240, 218, "memory")
    picture.arrow((RIGHT + WIDTH / 2, 150), (RIGHT + WIDTH / 2, 114))
    box("9-projection", RIGHT, 86, "linear, softmax")
    for page, x in (("10-learning", RIGHT - 12), ("11-decoding", RIGHT + 92)):
        picture.arrow((RIGHT + WIDTH / 2, 86), (RIGHT + WIDTH / 2, 68), (x + 45, 68), (x + 45, 50))
        box(page, x, 20, PAGES[page].lower(), width=90)
    if here:
        picture.box(16, 20, 220, 60, f"you are here:\n{PAGES[here]}", colour=COLOURS[here] or GREEN)
    return picture

"""The bytes of the exported page's kernels, from their source: python docs/make/wasm.py

Assembles the part of the WebAssembly text format that kernels.wat uses: one module that imports a memory and exports
functions of i32 parameters without results, written as folded instructions.
"""

import re
from collections.abc import Iterator
from typing import cast

from allyouneed.apps.convert.html import WEB

Expression = list["str | Expression"]

TYPES = {"i32": 0x7F, "v128": 0x7B}
SIMD = {  # opcodes after the prefix 0xfd
    "v128.load": 0x00, "v128.load8x8_s": 0x01, "v128.const": 0x0C, "f32x4.extract_lane": 0x1F,
    "i32x4.extend_low_i16x8_s": 0xA7, "i32x4.extend_high_i16x8_s": 0xA8, "f32x4.convert_i32x4_s": 0xFA,
    "f32x4.add": 0xE4, "f32x4.mul": 0xE6,
}  # fmt: skip
PLAIN = {
    "br_if": 0x0D, "local.get": 0x20, "local.set": 0x21, "f32.store": 0x38, "i32.const": 0x41,
    "i32.lt_u": 0x49, "i32.add": 0x6A, "i32.sub": 0x6B, "i32.shl": 0x74, "f32.add": 0x92,
}  # fmt: skip
ALIGNMENTS = {"v128.load": 4, "v128.load8x8_s": 3, "f32.store": 2}  # the natural ones, as powers of two


def assemble(source: str) -> bytes:
    """A module in the text format → its binary format."""
    (module,) = parse(source)
    memory, *functions = (cast(Expression, part) for part in module[1:])
    imported = [name.strip('"') for name in cast(list[str], memory[1])[1:]]
    functypes = [functype(function) for function in functions]
    types = list(dict.fromkeys(functypes))
    exports = [name(cast(list[str], function[1])[1].strip('"')) for function in functions]
    return b"\0asm\1\0\0\0" + b"".join(
        (
            section(1, types),
            section(2, [name(imported[0]) + name(imported[1]) + b"\2\0" + unsigned(int(cast(str, memory[2])))]),
            section(3, [unsigned(types.index(one)) for one in functypes]),
            section(7, [export + b"\0" + unsigned(i) for i, export in enumerate(exports)]),
            section(10, [sized(body(function)) for function in functions]),
        )
    )


def parse(source: str) -> Expression:
    """The expressions of a text as nested lists of words."""
    stack: list[Expression] = [[]]
    for word in re.findall(r'"[^"]*"|[()]|[^\s()]+', re.sub(";;.*", "", source)):
        if word == "(":
            stack.append([])
        elif word == ")":
            closed = stack.pop()
            stack[-1].append(closed)
        else:
            stack[-1].append(word)
    return stack[0]


def functype(function: Expression) -> bytes:
    """The type of a function: its parameters, and no result."""
    return b"\x60" + vector([bytes([TYPES[part[2]]]) for part in declared(function, "param")]) + vector([])


def body(function: Expression) -> bytes:
    """Locals and instructions of a function."""
    numbers = {part[1]: i for i, part in enumerate([*declared(function, "param"), *declared(function, "local")])}
    kinds = [part[2] for part in declared(function, "local")]
    runs = [(kinds.count(kind), kind) for kind in dict.fromkeys(kinds)]  # they are sorted by type
    instructions = [part for part in function[1:] if part[0] not in ("export", "param", "local")]
    code = b"".join(encode(cast(Expression, part), numbers, ()) for part in instructions)
    return vector([unsigned(count) + bytes([TYPES[kind]]) for count, kind in runs]) + code + b"\x0b"


def declared(function: Expression, keyword: str) -> list[list[str]]:
    """The parameters or the locals of a function, as [keyword, name, type]."""
    return [cast(list[str], part) for part in function[1:] if part[0] == keyword]


def encode(expression: Expression, numbers: dict[str, int], labels: tuple[str, ...]) -> bytes:
    """One instruction after those that compute its operands; `labels` are those of the loops around it."""
    name, words = cast(str, expression[0]), [part for part in expression[1:] if isinstance(part, str)]
    parts = [part for part in expression[1:] if not isinstance(part, str)]
    if name == "loop":
        inner = b"".join(encode(part, numbers, (words[0], *labels)) for part in parts)
        return b"\x03\x40" + inner + b"\x0b"
    operands = b"".join(encode(part, numbers, labels) for part in parts)
    opcode = b"\xfd" + unsigned(SIMD[name]) if name in SIMD else bytes([PLAIN[name]])
    return operands + opcode + b"".join(immediates(name, words, numbers, labels))


def immediates(name: str, words: list[str], numbers: dict[str, int], labels: tuple[str, ...]) -> Iterator[bytes]:
    """The constants of an instruction."""
    if name in ALIGNMENTS:
        yield unsigned(ALIGNMENTS[name]) + unsigned(int(words[0].removeprefix("offset=")) if words else 0)
    elif name == "br_if":
        yield unsigned(labels.index(words[0]))
    elif name.startswith("local."):
        yield unsigned(numbers[words[0]])
    elif name == "v128.const":
        yield from (int(word).to_bytes(4, "little") for word in words[1:])
    else:
        yield from (signed(int(word)) for word in words)


def section(number: int, entries: list[bytes]) -> bytes:
    """A section of a module."""
    return bytes([number]) + sized(vector(entries))


def vector(entries: list[bytes]) -> bytes:
    """Entries after their number."""
    return unsigned(len(entries)) + b"".join(entries)


def name(text: str) -> bytes:
    """A name after its length."""
    return sized(text.encode())


def sized(content: bytes) -> bytes:
    """Bytes after their number."""
    return unsigned(len(content)) + content


def unsigned(number: int) -> bytes:
    """LEB128: seven bits a byte, the lowest first."""
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + unsigned(rest) if rest else bytes([low])


def signed(number: int) -> bytes:
    """LEB128 of a number that is not negative, with room for a sign."""
    low, rest = number & 127, number >> 7
    return bytes([low | 128]) + signed(rest) if rest or low & 64 else bytes([low])


if __name__ == "__main__":
    (WEB / "kernels.wasm").write_bytes(assemble((WEB / "kernels.wat").read_text(encoding="utf-8")))

"""Documents over HTTP: translated, fetched, forgotten; and what strangers send instead."""

import io
import shutil
import threading
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import deepl
import pytest
from fastapi.testclient import TestClient

from allyouneed.apps.documents import FORMATS
from allyouneed.apps.serve.keys import add_key
from allyouneed.apps.serve.translated_documents import StoredFiles
from allyouneed.apps.serve.uploads import safe_name
from messages import numbers_in
from serve.live import running
from serve.stub import stub_app

LANGUAGES = {"source": "en", "target": "it"}


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(stub_app(max_file=100_000), base_url="http://localhost") as client:
        yield client


def upload(client: TestClient, name: str, content: bytes, **change: str) -> Any:
    return client.post("/translate_file", data={**LANGUAGES, **change}, files={"file": (name, content)})


def read(files: StoredFiles, token: str) -> tuple[str, bytes]:
    file = files.find(token)
    assert file is not None
    return file.name, file.path.read_bytes()


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.txt", "Hello World.\n\nSecond line\n", "hELLO wORLD.\n\nsECOND LINE\n"),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nHello\n", "1\n00:00:01,000 --> 00:00:02,000\nhELLO\n"),
        ("a.json", '{"key": "Hello"}', '{"key": "hELLO"}'),
        ("a.html", "<p>Hello <b>World</b></p>", "<p>hELLO <b>wORLD</b></p>"),
    ],
)
def test_a_document_is_translated_and_fetched(client: TestClient, name: str, content: str, expected: str) -> None:
    answer = upload(client, name, content.encode())
    assert answer.status_code == 200
    url = answer.json()["translatedFileUrl"]
    assert url.startswith("http://localhost/download_file/")
    assert url.endswith(name.replace(".", "_it."))
    fetched = client.get(url)
    assert fetched.text == expected
    assert fetched.headers["content-disposition"].startswith("attachment")
    assert fetched.headers["content-type"] == "application/octet-stream"


def test_the_encoding_of_a_file_can_be_named(client: TestClient) -> None:
    answer = upload(client, "a.txt", "Città".encode("latin-1"), encoding="latin-1")
    assert client.get(answer.json()["translatedFileUrl"]).content == "cITTÀ".encode("latin-1")


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("a.txt", b"\xff", "field encoding"),
        ("a.csv", b"a,b\n1,x\n", "field column"),
    ],
)
def test_a_refusal_names_fields_of_the_request(client: TestClient, name: str, content: bytes, advice: str) -> None:
    answer = upload(client, name, content)
    assert (answer.status_code, advice in answer.json()["error"], "--" in answer.text) == (400, True, False)


@pytest.mark.parametrize("before", [1, 70, 200])
def test_a_refusal_names_the_line_of_the_document(client: TestClient, before: int) -> None:
    lines = "".join(f"<p>Line <b>{number}x</b></p>\n" for number in range(before))
    answer = upload(client, "a.html", f"{lines}<p>refuse!</p>\n<p>more</p>".encode())
    assert answer.status_code == 400
    assert answer.json()["error"].startswith(f"line {before + 1}: ")


def test_the_language_of_a_document_is_detected(client: TestClient) -> None:
    answer = upload(client, "a.txt", "Wo ist der nächste Bahnhof?".encode(), source="auto")
    assert client.get(answer.json()["translatedFileUrl"]).text == "wO IST DER NÄCHSTE bAHNHOF?"


@pytest.mark.parametrize(
    ("name", "content", "change", "status", "error"),
    [
        ("a.exe", b"MZ", {}, 400, "file format "),
        ("a", b"text", {}, 400, "file format "),
        ("a.txt", b"", {}, 400, "empty file"),
        ("a.txt", b"text", {"source": ""}, 400, "source parameter"),
        ("a.txt", b"text", {"target": ""}, 400, "target parameter"),
        ("a.txt", b"text", {"target": "xx"}, 400, "xx "),
        ("a.txt", b"text", {"source": "it", "target": "de"}, 400, "German (de) "),
        ("a.json", b"{", {}, 400, "the document"),
        ("a.txt", b"a" * 100_001, {}, 413, "limit (100000)"),
        ("a.txt", b"a" * 1_000_000, {}, 413, "larger than"),
    ],
)
def test_what_cannot_be_translated_is_refused(
    client: TestClient, name: str, content: bytes, change: dict[str, str], status: int, error: str
) -> None:
    answer = upload(client, name, content, **change)
    assert answer.status_code == status
    assert error in answer.json()["error"]


def test_a_column_of_a_table_and_a_glossary_can_be_named(client: TestClient) -> None:
    answer = upload(client, "a.csv", b"id,text\n1,Hello house\n", column="text", glossary='{"house": "Casa"}')
    assert client.get(answer.json()["translatedFileUrl"]).text == "id,text\n1,hELLO Casa\n"
    answer = upload(client, "a.csv", b"id,text\n1,Hello\n", column="other")
    assert answer.status_code == 400
    answer = upload(client, "a.txt", b"Hello", glossary="{")
    assert (answer.status_code, "glossary parameter is not JSON" in answer.text) == (400, True)


def test_a_request_without_a_file_is_refused(client: TestClient) -> None:
    for request in ({"data": LANGUAGES}, {"json": LANGUAGES}, {"files": {"file": (None, "text")}, "data": LANGUAGES}):
        answer = client.post("/translate_file", **request)
        assert (answer.status_code, " file parameter" in answer.json()["error"]) == (400, True)


def office_file(content: bytes) -> bytes:
    """Make a .docx and .odt whose parts are all `content`."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text", zipfile.ZIP_STORED)
        for name in ("word/document.xml", "content.xml", "styles.xml", "[Content_Types].xml", "META-INF/manifest.xml"):
            archive.writestr(name, content)
    return file.getvalue()


ENTITIES = '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b "{}">{}]><a>&z9;</a>'.format(
    "boom" * 10, "".join(f'<!ENTITY z{n} "{f"&z{n - 1};" * 10 if n else "&b;"}">' for n in range(10))
)
FILE_ENTITY = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><xliff version="1.2">'
    '<file source-language="en" target-language="it"><body><trans-unit id="1"><source>&b;</source></trans-unit>'
    "</body></file></xliff>"
)
NESTED = "<a>" * 20_000


@pytest.mark.slow
@pytest.mark.parametrize("ending", [ending for endings in FORMATS.values() for ending in endings])
@pytest.mark.parametrize(
    "content",
    [ENTITIES.encode(), FILE_ENTITY.encode(), NESTED.encode(), b"[" * 50_000, b"\x00\xff" * 1_000, b"PK\x03\x04" * 100],
    ids=["entities", "file entity", "nested", "deep", "bytes", "broken zip"],
)
def test_hostile_documents_are_answered_soon_and_without_an_error_in_the_program(
    client: TestClient, ending: str, content: bytes
) -> None:
    start = time.process_time()
    answer = upload(client, f"a{ending}", content)
    assert answer.status_code in (200, 400), answer.text
    if answer.status_code == 200:
        assert b"root:" not in client.get(answer.json()["translatedFileUrl"]).content
    assert time.process_time() - start < 5


@pytest.mark.parametrize("ending", [".docx", ".odt"])
@pytest.mark.parametrize(
    "content",
    [b"0" * 60_000_000, ENTITIES.encode(), FILE_ENTITY.encode(), NESTED.encode(), b"<" * 1_000],
    ids=["bomb", "entities", "file entity", "nested", "no XML"],
)
def test_hostile_office_files_are_refused(ending: str, content: bytes) -> None:
    start = time.process_time()
    with TestClient(stub_app(), base_url="http://localhost") as client:
        answer = upload(client, f"a{ending}", office_file(content))
    assert answer.status_code == 400
    assert "root:" not in answer.text
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    "path",
    ["%2e%2e", "%2e%2e/etc/passwd", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "x.txt", "", "a%00b", "a" * 5_000],
)
def test_no_path_of_a_request_reaches_the_disk(client: TestClient, path: str) -> None:
    answer = client.get(f"/download_file/{path}")
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_names_are_made_safe() -> None:
    assert safe_name("../../a b.txt") == "a b.txt"
    assert safe_name("C:\\\\dir\\è.txt") == "è.txt"
    assert safe_name('a"\r\nX: y.txt') == "a___X_ y.txt"
    assert safe_name("..") == "document"
    assert len(safe_name("a" * 1_000 + ".txt")) == 100


def test_files_can_be_switched_off() -> None:
    with TestClient(stub_app(max_file=0), base_url="http://localhost") as client:
        for answer in (upload(client, "a.txt", b"a"), client.get("/download_file/a.txt")):
            assert answer.status_code == 403
            assert "disabled" in answer.json()["error"]
        settings = client.get("/frontend/settings").json()
        assert (settings["filesTranslation"], settings["supportedFilesFormat"]) == (False, [])


def test_files_expire_take_limited_room_and_are_gone_at_the_end() -> None:
    now = 0.0
    files = StoredFiles(lifetime=10, max_size=10, clock=lambda: now)
    token = files.add(b"12345678", "a.txt")
    assert read(files, token) == ("a.txt", b"12345678")
    assert files.find("other") is None
    with pytest.raises(Exception, match="no room"):
        files.add(b"123", "b.txt")
    folder = files._folder
    assert folder is not None
    assert folder.stat().st_mode & 0o777 == 0o700
    now = 10.0
    assert files.find(token) is None
    assert list(folder.iterdir()) == []
    assert read(files, files.add(b"123", "b.txt")) == ("b.txt", b"123")
    files.close()
    assert not folder.exists()


@pytest.mark.parametrize(
    "html", ["<p>Hello <b>World</b>!</p>", "Hello <a href='x'>World</a>", "Hello &amp; World", "a<br>b"]
)
def test_pieces_of_html_keep_their_tags(client: TestClient, html: str) -> None:
    answer = client.post("/translate", json={"q": html, "format": "html", **LANGUAGES}).json()
    assert answer["translatedText"].lower() == html.lower()
    assert answer["translatedText"] != html


@pytest.mark.parametrize("head", [
    '<meta charset="iso-8859-1">', '<meta charset="shift_jis">', '<meta charset="utf-16">', '<meta charset="klingon">',
    '<?xml version="1.0" encoding="iso-8859-1"?>',
])  # fmt: skip
def test_text_with_tags_is_unicode_whatever_it_declares(client: TestClient, head: str) -> None:
    html = f"{head}<p>Città è ş 日</p>"
    expected = f"{head}<p>cITTÀ È Ş 日</p>"
    answer = client.post("/translate", json={"q": html, "format": "html", **LANGUAGES})
    assert answer.json() == {"translatedText": expected}
    for handling in ("html", "xml"):
        fields = {"text": [html], "target_lang": "IT", "source_lang": "EN", "tag_handling": handling}
        assert client.post("/v2/translate", json=fields).json()["translations"][0]["text"] == expected


def test_a_zero_byte_in_text_with_tags_is_dropped(client: TestClient) -> None:
    answer = client.post("/translate", json={"q": "<p>Hel\0lo</p>", "format": "html", **LANGUAGES})
    assert answer.json() == {"translatedText": "<p>hELLO</p>"}


def test_a_disk_that_is_full_is_answered_503(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    answer = upload(client, "a.txt", b"Hello")
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    monkeypatch.undo()
    assert upload(client, "a.txt", b"Hello").status_code == 200


def test_deepl_documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    (tmp_path / "a.txt").write_text("Hello World")
    (tmp_path / "a.json").write_text("{")
    with running(stub_app()) as url, closing(deepl.DeepLClient("any", server_url=url)) as client:
        status = client.translate_document_from_filepath(
            tmp_path / "a.txt", tmp_path / "b.txt", source_lang="EN", target_lang="IT"
        )
        assert (status.done, status.billed_characters) == (True, 11)
        assert (tmp_path / "b.txt").read_text() == "hELLO wORLD"
        with pytest.raises(deepl.DeepLException, match="JSON"):
            client.translate_document_from_filepath(tmp_path / "a.json", tmp_path / "b.json", target_lang="IT")
        with pytest.raises(deepl.DeepLException, match="Not found"):
            client.translate_document_get_status(deepl.DocumentHandle("a", "b"))
        with (tmp_path / "a.txt").open("rb") as file:
            handle = client.translate_document_upload(file, source_lang="EN", target_lang="IT")
        with pytest.raises(deepl.DeepLException, match="Not found"):
            client.translate_document_get_status(deepl.DocumentHandle(handle.document_id, "x"))


def test_the_characters_of_a_document_are_those_that_are_translated(tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "one", characters_per_day=10)
    content = {"file": ("a.html", b"<p class='title'>Hello <b>you</b></p>")}
    header = {"Authorization": f"Bearer {key}"}
    with TestClient(stub_app(keys=str(tmp_path / "keys")), base_url="http://localhost", headers=header) as client:
        for route, languages in (("/translate_file", LANGUAGES), ("/v2/document", {"target_lang": "it"})):
            used = client.get("/v2/usage").json()["character_count"]
            answer = client.post(route, data=languages, files=content)
            assert (used, answer.status_code) == ((0, 200) if route == "/translate_file" else (9, 456)), answer.text


def test_a_refusal_over_deepls_api_names_a_field_that_it_takes(client: TestClient) -> None:
    for fields, status in (({}, 400), ({"column": "text"}, 200)):
        file = {"file": ("a.csv", b"id,text\n1,Hello\n")}
        answer = client.post("/v2/document", data={"target_lang": "it", **fields}, files=file)
        assert answer.status_code == status
        assert ("the field column" in answer.text) == (status == 400)


@pytest.mark.parametrize(
    ("name", "content", "change"),
    [("a.txt", b"text", {"target": "xx"}), ("a.txt", b"text", {"source": "it", "target": "de"}), ("a.json", b"{", {})],
)
def test_a_document_that_is_refused_costs_no_characters(
    name: str, content: bytes, change: dict[str, str], tmp_path: Path
) -> None:
    with TestClient(stub_app(), base_url="http://localhost") as client:
        assert upload(client, name, content, **change).status_code == 400
        assert client.get("/v2/usage").json()["character_count"] == 0


def test_deepl_documents_take_glossaries_and_refuse_other_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deepl.http_client, "max_network_retries", 0)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    source, target = tmp_path / "a.txt", tmp_path / "b.txt"
    source.write_text("The house")
    languages: dict[str, Any] = {"source_lang": "EN", "target_lang": "IT"}
    with running(stub_app()) as url, closing(deepl.DeepLClient("any", server_url=url)) as client:
        glossary = client.create_glossary("ours", "EN", "IT", {"house": "Casa"})
        client.translate_document_from_filepath(source, target, glossary=glossary, **languages)
        assert target.read_text() == "tHE Casa"
        with pytest.raises(deepl.DeepLException, match="output_format"):
            client.translate_document_upload("a", filename="a.txt", output_format="pdf", **languages)
        with pytest.raises(deepl.DeepLException, match="formality"):
            client.translate_document_from_filepath(source, target, formality="more", **languages)


def test_deepl_translates_marked_up_texts() -> None:
    with TestClient(stub_app(), base_url="http://localhost") as client:
        body: dict[str, Any] = {"text": ["Hello <b>World</b>"], "target_lang": "IT", "source_lang": "EN"}
        answer = client.post("/v2/translate", json={**body, "tag_handling": "html"}).json()
    assert answer["translations"][0]["text"] == "hELLO <b>wORLD</b>"


def test_a_temporary_folder_that_was_cleaned_is_made_again() -> None:
    files = StoredFiles(lifetime=10, max_size=100)
    lost = files.add(b"1", "a.txt")
    assert files._folder is not None
    shutil.rmtree(files._folder)
    assert files.find(lost) is None
    assert read(files, files.add(b"2", "b.txt")) == ("b.txt", b"2")
    files.close()


def hostile(paragraphs: int, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    types = (
        '<Types><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
        'wordprocessingml.document.main+xml"/></Types>'
    )
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as written:
        written.writestr("[Content_Types].xml", types)
        written.writestr("word/document.xml", '<w:document xmlns:w="w">' + "<w:p/>" * paragraphs + "</w:document>")
    return data.getvalue()


@pytest.mark.slow
def test_a_document_that_takes_long_is_cut_off_and_holds_up_no_other() -> None:
    with TestClient(stub_app(request_timeout=5), base_url="http://localhost") as client:
        answers: list[Any] = []
        slow = hostile(1_000_000, zipfile.ZIP_STORED)
        other = threading.Thread(target=lambda: answers.append(upload(client, "a.docx", slow)))
        other.start()
        assert upload(client, "a.txt", b"Hello").status_code == 200
        other.join()
        assert answers[0].status_code == 504
        assert upload(client, "a.txt", b"Hello").status_code == 200


def test_a_document_that_needs_more_memory_than_there_is_for_its_size_is_refused() -> None:
    with TestClient(stub_app(max_file=2**16), base_url="http://localhost") as client:
        answer = upload(client, "a.docx", hostile(290_000))
        assert (answer.status_code, "more memory" in answer.json()["error"]) == (400, True)


def test_the_texts_of_a_document_are_limited(client: TestClient) -> None:
    answer = upload(client, "a.txt", b"a\n" * 2000)
    assert answer.status_code == 400
    assert numbers_in(answer.json()["error"]) == [2000, 1562]

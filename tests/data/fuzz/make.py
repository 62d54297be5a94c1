#!/usr/bin/env python3
"""Writes small inputs for the fuzzers of columns, journal, manifest, messages, package, parquet, safetensors,
sentencepiece, tokenizer_json, toml and trainer into the folders beside itself. A fuzzer tries thousands of changes of
each input, so inputs of some hundred bytes let it run much faster. Needs pyarrow and Cap'n Proto's program capnp."""

import io
import json
import pathlib
import struct
import subprocess
import sys
import zipfile

import pyarrow
import pyarrow.parquet

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "tfrecord"))
from tfrecord import varint  # noqa: E402


def write(fuzzer, name, content):
    (FOLDER / fuzzer).mkdir(exist_ok=True)
    (FOLDER / fuzzer / f"small_{name}").write_bytes(content)


# Parquet. The first byte of an input chooses the columns that the fuzzer reads (parquet_fuzz.cc).


def parquet(choice, name, columns, **options):
    path = FOLDER / "parquet" / f"small_{name}"
    options = {"store_schema": False, "use_dictionary": False, "write_statistics": False, "compression": "none", **options}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, **options)
    path.write_bytes(bytes([choice]) + path.read_bytes()[1:])


def write_parquet():
    age = pyarrow.array([39, -3, None, 7, 2**40], pyarrow.int64())
    small = pyarrow.array([1, 2, 3, 4, 255], pyarrow.uint8())
    weight = pyarrow.array([0.5, None, 2.25, -1.0, 1e-300], pyarrow.float64())
    job = pyarrow.array(["clerk", "", None, "cook", "clerk"])
    is_new = pyarrow.array([True, False, True, True, False])
    pixels = pyarrow.array([[1, 2], [], None, [3, None], [4]], pyarrow.list_(pyarrow.float32()))
    parquet(0, "age_as_float", {"age": age})
    parquet(1, "age_as_integer", {"age": age.drop_null()}, row_group_size=2)
    parquet(2, "age_as_bytes", {"age": age}, use_dictionary=True)
    parquet(0, "age_of_float32", {"age": pyarrow.array([1, 2, None], pyarrow.float32())})
    parquet(1, "age_of_int32", {"age": pyarrow.array([1, 2], pyarrow.int32())}, compression="snappy")
    parquet(3, "plain_and_arrow", {"age": age, "small": small, "weight": weight})
    parquet(4, "with_bool", {"age": age, "is_new": is_new, "job": job})
    parquet(5, "lists", {"kind": pyarrow.array(["a", "b", "a", None, "a"]), "pixels": pixels})
    parquet(5, "dictionary", {"kind": pyarrow.array(["a", "b", "a"]).dictionary_encode(), "pixels": pixels[:3]},
            use_dictionary=True, store_schema=True)
    parquet(6, "dates", {"day": pyarrow.array([0, 1], pyarrow.date32()), "words": pyarrow.array([["x"], ["y", "z"]])})
    parquet(7, "fixed_size_lists", {"point": pyarrow.array([[1, 2]] * 2, pyarrow.list_(pyarrow.int32(), 2)),
                                    "large": pyarrow.array([1, 2**63], pyarrow.uint64())}, store_schema=True)
    parquet(8, "job", {"job": job}, use_dictionary=True, compression="zstd")
    parquet(9, "pixels", {"pixels": pixels}, row_group_size=2)


# SentencePiece. The bytes before the first "\n", with which a model begins, are a text that the fuzzer encodes.


def field(number, value):
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3) + varint(value)


def charsmap():
    """Makes "A" small: a trie of three units, and the text "a". See input/tokens/charsmap.cc."""
    units = [0x40 << 10, 0x41 | 1 << 8 | 3 << 10, 1 << 31]
    return struct.pack("<4I", 4 * len(units), *units) + b"a\0"


def model(pieces, trainer=b"", normaliser=b""):
    kinds = {"<unk>": 2, "<s>": 3, "<sep>": 4}
    content = b""
    for i, piece in enumerate(pieces):
        kind = 6 if piece.startswith("<0x") else kinds.get(piece, 1)
        described = field(1, piece.encode()) + field(2, -float(i)) + (field(3, kind) if kind != 1 else b"")
        content += field(1, described)
    return content + (field(2, trainer) if trainer else b"") + (field(3, normaliser) if normaliser else b"")


def write_sentencepiece():
    pieces = ["<unk>", "<s>", "\u2581", "a", "b", "ab", "\u2581ab", "ö"]
    write("sentencepiece", "unigram", " ab  öA c".encode() + model(pieces))
    write("sentencepiece", "bpe", b"ab abba" + model(pieces, trainer=field(3, 2)))
    write("sentencepiece", "bytes", "a狐".encode() + model([*pieces, "<sep>", "<0xE7>", "<0x8B>", "<0x90>"],
                                                      trainer=field(3, 2) + field(35, 1)))
    write("sentencepiece", "unigram_bytes", "a狐<sep>".encode() + model([*pieces, "<sep>", "<0xE7>"], trainer=field(35, 1)))
    options = field(2, charsmap()) + field(3, 0) + field(4, 0) + field(5, 0)
    write("sentencepiece", "charsmap", b"ABA  a" + model(pieces[:5], normaliser=options))


# tokenizer.json. The bytes before the first "{" are a text that the fuzzer encodes.


def vocabulary(*pieces):
    return {piece: i for i, piece in enumerate(pieces)}


def bpe(*pieces, merges=(), **more):
    return {"type": "BPE", "vocab": vocabulary(*pieces), "merges": list(merges), **more}


def tokenizer(name, text, model, **parts):
    write("tokenizer_json", name, text.encode() + json.dumps(
        {"model": model, **parts}, ensure_ascii=False, separators=(",", ":")).encode())


def split(pattern, behavior, **more):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, **more}


def write_tokenizer_json():
    letters = ["a", "b", "ab", "Ġ", "Ġab", "1"]
    tokenizer("byte_level", "ab ab1", bpe(*letters, merges=["a b", "Ġ ab"]), pre_tokenizer={"type": "ByteLevel"})
    tokenizer("byte_level_added", " ab<s> a", bpe(*letters, merges=[["a", "b"]], ignore_merges=True),
              pre_tokenizer={"type": "ByteLevel", "add_prefix_space": False, "use_regex": False},
              added_tokens=[{"id": 9, "content": "<s>", "normalized": False, "lstrip": True, "rstrip": True}],
              post_processor={"type": "RobertaProcessing", "cls": ["<s>", 9], "sep": ["a", 0]})
    tokenizer("byte_fallback", "aö狐a", bpe("<u>", "a", "<0xC3>", "<0xB6>", "▁", unk_token="<u>", fuse_unk=True,
                                         byte_fallback=True),
              normalizer={"type": "Sequence", "normalizers": [
                  {"type": "Prepend", "prepend": "▁"},
                  {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]})
    tokenizer("bert", "Ab[SEP] 狐ö!", {"type": "WordPiece", "unk_token": "[U]", "continuing_subword_prefix": "##",
                                     "max_input_chars_per_word": 9, "vocab": vocabulary("[U]", "a", "##b", "[SEP]", "!")},
              normalizer={"type": "BertNormalizer", "strip_accents": None, "lowercase": True},
              pre_tokenizer={"type": "BertPreTokenizer"},
              added_tokens=[{"id": 3, "content": "[SEP]", "normalized": True}],
              post_processor={"type": "Sequence", "processors": [{"type": "ByteLevel"}, {
                  "type": "TemplateProcessing",
                  "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}}],
                  "special_tokens": {"[SEP]": {"ids": [3]}}}]})
    tokenizer("unigram", "ab  ab", {"type": "Unigram", "unk_id": 0, "vocab": [
        ["<u>", 0], ["▁", -2.5], ["a", -3], ["▁ab", -1]]},
              normalizer={"type": "Sequence", "normalizers": [
                  {"type": "NFKC"}, {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
                  {"type": "Strip", "strip_left": True}]},
              pre_tokenizer={"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True})
    tokenizer("normalisers", "Éa", bpe("e", "a"), normalizer={"type": "Sequence", "normalizers": [
        {"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, {"type": "NFC"}, {"type": "NFKD"}]})
    tokenizer("splits", "ab, t1q2 zz", bpe(*letters), pre_tokenizer={"type": "Sequence", "pretokenizers": [
        {"type": "Whitespace"}, {"type": "Digits", "individual_digits": True},
        {"type": "Punctuation", "behavior": "Contiguous"}, split({"String": "t"}, "MergedWithPrevious"),
        split({"String": "q"}, "MergedWithNext", invert=True), split({"Regex": "z+"}, "Removed"),
        {"type": "WhitespaceSplit"}]})


# columns.cbor.


def cbor(value):
    def head(kind, number):
        if number < 24:
            return bytes([kind << 5 | number])
        size = 0 if number < 1 << 8 else 1 if number < 1 << 16 else 2 if number < 1 << 32 else 3
        return bytes([kind << 5 | 24 + size]) + number.to_bytes(1 << size, "big")

    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, float):
        return b"\xfb" + struct.pack(">d", value)
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    return head(5, len(value)) + b"".join(cbor(key) + cbor(inner) for key, inner in value.items())


def write_columns():
    number = {"are_classes": True, "deviation": 2.5, "largest": 0.0, "mean": -1.0, "name": "x", "smallest": 0.0, "words": []}
    words = {**number, "name": "w", "words": ["", "a", "long " + "x" * 30]}
    write("columns", "both", cbor({"columns": [number, words], "format": 1}))
    write("columns", "none", cbor({"columns": [], "format": 1}))
    write("columns", "deep", b"\x81" * 300 + b"\x01")
    write("columns", "deep_text", b"\x7f" * 300)
    write("columns", "huge_array", b"\x9b" + b"\x7f" + b"\xff" * 7)


# Files of checkpoints and packages.


def safetensors(header, data=b""):
    text = json.dumps(header, separators=(",", ":")).encode()
    return struct.pack("<Q", len(text)) + text + data


def write_safetensors():
    tensors = {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
               "b": {"dtype": "BF16", "shape": [], "data_offsets": [8, 10]}}
    write("safetensors", "two", safetensors({"__metadata__": {"k": "v"}, **tensors}, bytes(10)))
    write("safetensors", "gap", safetensors({"b": tensors["b"]}, bytes(10)))
    write("safetensors", "twice", b"\x14\0\0\0\0\0\0\0" + b'{"a":{},"a":{}}     ')


def write_manifest():
    file = {"name": "shard-0.safetensors", "bytes": 8, "data_begin": 0, "xxh3": "0000000000000001",
            "chunks_xxh3": "0000000000000001"}
    write("manifest", "one", json.dumps(
        {"format": 1, "job": "j", "generation": 1, "step": 7, "attempt": 1, "created": 5, "seed": "0000000000000001",
         "records": 10, "rule": "sgd", "slots": 0,
         "variables": [{"name": "v", "shape": [2], "kind": "trainable", "slices": [[0, 2, 0, 0]]}],
         "shards": [{"version": 7, "elements": 2, "applied": [
             {"worker": 0, "incarnation": "0000000000000009", "last_sequence": 7, "clock": 7}]}],
         "files": [file],
         "pacer": {"examples": 7, "late": 0, "skipped": 0, "complete_epochs": 0,
                   "ledger": [{"epoch": 0, "visited": [[0, 7]]}]},
         "job_toml": ""}, separators=(",", ":")).encode())


def write_package():
    sidecar = json.dumps(
        {"format": 2, "kind": "torchscript", "library": "torch", "library_version": "2.11.0", "cpu": "", "batch": None,
         "variables": [{"name": "w", "kind": "trainable", "dtype": "float32", "shape": [2], "persistent": True}],
         "aliases": {"tied": "w"}, "columns": [{"name": "inputs", "dtype": "float32", "shape": [2], "limit": 0}],
         "metrics": [{"name": "accuracy", "kind": "mean"}],
         "programs": {"step": {"columns": ["inputs"], "stages": None}}}, separators=(",", ":")).encode()
    write("package", "sidecar", sidecar)
    for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w", method) as archive:
            for member, text in (("step/extra/disttrain.json", sidecar), ("step/code/m.py", b"def f(): pass\n"),
                                 ("step/extra/disttrain.safetensors", safetensors(
                                     {"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, bytes(8)))):
                archive.writestr(zipfile.ZipInfo(member), text, method)
        write("package", name, content.getvalue())


# Configuration, and messages of a trainer.


def write_toml():
    write("toml", "job", b'''[job]
name = "a"
[model]
builtin = "mlp"
layers = [4, 2]
[data]
format = "csv"
path = "/d"
files = "*.csv"
[data.columns]
x = { kind = "numeric", normalise = "standard" }
y = { kind = "label" }
[train]
batch_size = 8
steps = 5
[train.optimizer]
rule = "adam"
''')
    write("toml", "cluster", b'''[cluster]
name = "c"
[chief]
address = "127.0.0.1:7000"
state_directory = "/s"
[[ps]]
address = "127.0.0.1:7001"
[[worker]]
address = "127.0.0.1:7002"
''')
    write("toml", "deep_array", b"a = " + b"[" * 200)
    write("toml", "deep_key", b"a" + b".a" * 200 + b" = 1")


def write_trainer():
    for message in ({"type": "hello", "sdk": "1.0", "protocol": 1},
                    {"type": "describe", "variables": [{"name": "w", "kind": "trainable", "dtype": "float32", "shape": [2]}],
                     "metrics": ["accuracy"], "records": 9, "evaluation_records": 0, "evaluates": True, "predicts": False,
                     "clears_ahead": False},
                    {"type": "values"}, {"type": "ready", "number": 1, "end": 2},
                    {"type": "finished", "number": 1, "loss_sum": 0.5, "metrics": [1.0]}, {"type": "checkpoint"},
                    {"type": "failed", "message": "no \x1b[2J"}):
        write("trainer", message["type"], json.dumps(message, separators=(",", ":")).encode())
    write("trainer", "deep", b"[" * 400)


# Messages and records of the journal, as Cap'n Proto's text describes them.


def capnp(fuzzer, name, schema, kind, text):
    tree = FOLDER.parents[2]
    write(fuzzer, name, subprocess.run(["capnp", "convert", "text:binary", tree / schema, kind, f"-I{tree}"], input=text.encode(),
                                       check=True, capture_output=True).stdout)


MEMBER = "(role = worker, index = 1, incarnation = 9)"


def write_messages():
    for name, kind, text in (
            ("hello", "Hello", f"""(oldestVersion = 1, newestVersion = 1, cluster = "c", who = (task = (
                member = {MEMBER}, address = "h:1", host = "h", pid = 7)))"""),
            ("push", "Push", "(bucket = 1, examples = 8, loss = 0.5, epoch = 1, lease = 3, last = true, visited = [(begin = 0, end = 8)])"),
            ("described", "ControlMessage", """(jobDescribed = (job = 1, columns = "\\xa1", trainRecords = 9, model = (
                variables = [(name = "v", shape = [2, 3])])))"""),
            ("heartbeat", "ControlMessage", "(heartbeat = (job = 1, generation = 2))"),
            ("log", "ControlMessage", """(logLines = (lines = [(role = ps, index = 1, text = "x")]))"""),
            ("submit", "ControlMessage", """(submitJob = (jobToml = "[job]"))"""),
            ("failed", "ControlMessage", """(taskFailed = (job = 1, generation = 1, reason = "no"))"""),
            ("none", "ControlMessage", "(requestDone = void)")):
        try:
            capnp("messages", name, "transport/wire/protocol.capnp", kind, text)
        except subprocess.CalledProcessError as error:
            sys.exit(f"{name}: {error.stderr.decode()}")


def write_journal():
    for name, text in (("term", "(term = (journal = 1, term = 2, chief = 3))"),
                       ("submitted", """(submitted = (job = 1, name = "j", toml = "[job]"))"""),
                       ("none", "(none = void)")):
        capnp("journal", name, "chiefd/journal/records.capnp", "Record", text)


if __name__ == "__main__":
    write_columns()
    write_journal()
    write_messages()
    write_manifest()
    write_package()
    write_safetensors()
    write_toml()
    write_trainer()
    write_parquet()
    write_sentencepiece()
    write_tokenizer_json()

#!/usr/bin/env python3
"""Writes small inputs for the fuzzers of parquet, sentencepiece and tokenizer_json into the folders beside itself. A
fuzzer tries thousands of changes of each input, so inputs of some hundred bytes let it run much faster. Needs pyarrow."""

import json
import pathlib
import struct
import sys

import pyarrow
import pyarrow.parquet

FOLDER = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent / "tfrecord"))
from tfrecord import varint  # noqa: E402


def write(fuzzer, name, content):
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
    """Makes "A" small: a trie of three units, and the text "a". See workerd/input/tokens/charsmap.cc."""
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


if __name__ == "__main__":
    write_parquet()
    write_sentencepiece()
    write_tokenizer_json()

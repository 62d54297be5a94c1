#!/usr/bin/env python3
"""Makes the files of this folder: trains small tokenizers, and writes the ids that they give to texts of several scripts.

It needs the Python packages tokenizers 0.23 and sentencepiece 0.2. tests/input/tokens/tokenizer_test.cc compares
disttrain's ids with these.
"""

import io
import json
import pathlib
import random

import sentencepiece
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

HERE = pathlib.Path(__file__).parent
CORPUS = """The quick brown fox jumps over the lazy dog. It doesn't care; they'll see that we've been here before.
A parameter server keeps the parameters of a network in memory, and applies gradients to them.
In 2024 there were 1234567 records, 99.5 percent of which were read 12 times.
Größe, Übermut und Fußgängerübergänge: die schönen Straßen führen nach Süden.
Le cœur a ses raisons que la raison ne connaît point; déjà vu, naïve façade.
Быстрая коричневая лиса прыгает через ленивую собаку. Обучение нейронной сети.
敏捷的棕色狐狸跳过懒狗。 神经网络的训练需要很多数据。
すばやい茶色の狐がのろまな犬を飛び越える。
الثعلب البني السريع يقفز فوق الكلب الكسول.
def train(model, data):\n    for batch in data:\n        loss = model(batch)\n\treturn loss
""".split("\n") * 8
SPECIAL_TEXTS = [
    "Hello, world!", "  two  blanks  ", "\n\n\nlines\r\nand\ttabs\n", "don't DON'T we'LL I'm ſ'S", "1 12 123 1234 12345 ½ ²³ ٣٤",
    "Größe NAÏVE façade \u0065\u0301 \u00e9 ﬁne ①②", "İstanbul ΣΑΣ ς ß ẞ", "狐狸 fox狐狸fox", "emoji 😀👍🏽👨‍👩‍👧 🇩🇪!",
    "zero\u200bwidth\u200djoin \ufeffbom", "nbsp\u00a0em\u2003ideographic\u3000space\u2028line\u0085next\u000bvertical",
    "<|endoftext|>", "a<|endoftext|>b <mask> c  <mask>  d", "[CLS] [MASK] [UNK] [SEP]", "<s>text</s> <unk>", "<pad><sep>x",
    "▁meta▁space ▁", "control\u0000\u0001\u007f\u0080chars", "mark n\u0303 \u0303 a\u0328\u0301", "x" * 150, "ab" * 80, "...!!!???---",
    " ", "a", "\n", "Ω≈ç√∫˜µ≤≥÷", "한국어 텍스트", "हिन्दी पाठ", "ไทย", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𐍈", "https://example.org/a?b=c&d=%20#e",
    "the " * 20, "tab\there", "Ｆｕｌｌｗｉｄｔｈ ｶﾀｶﾅ", "\u1112\u1161\u11ab", "\u2126 \u212b", "a\u0300\u0301\u0302", "\ue000private\U000e0001tag",
]
POOL = list("abcdefghijklmnopqrstuvwxyzABC   \n\t.,!'\"0123456789-éüßñ狐犬лисаΣ😀▁") + ["the ", "ing", "'s", "  ", "Größe", "<mask>"]


def texts():
    draw = random.Random(7)
    return SPECIAL_TEXTS + CORPUS[:12] + ["".join(draw.choices(POOL, k=draw.randint(1, 40))) for _ in range(120)]


def trained(tokenizer, trainer):
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def gpt2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return trained(tokenizer, trainers.BpeTrainer(
        vocab_size=500, special_tokens=["<|endoftext|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))


def roberta():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    trained(tokenizer, trainers.BpeTrainer(
        vocab_size=450, special_tokens=["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, rstrip=True)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def llama3():
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    words = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
             r"\s*[\r\n]+|\s+(?!\S)|\s+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(words), "isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    trained(tokenizer, trainers.BpeTrainer(
        vocab_size=500, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    tokenizer.add_special_tokens(["<|begin_of_text|>", "<|endoftext|>"])
    begin = tokenizer.token_to_id("<|begin_of_text|>")
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True),
        processors.TemplateProcessing(single="<|begin_of_text|> $A", special_tokens=[("<|begin_of_text|>", begin)])])
    return tokenizer


def llama2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trained(tokenizer, trainers.BpeTrainer(vocab_size=700, special_tokens=special, limit_alphabet=60, show_progress=False))
    file = json.loads(tokenizer.to_str())
    file["pre_tokenizer"] = None
    file["normalizer"] = {"type": "Sequence", "normalizers": [
        {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
    file["model"].update(unk_token="<unk>", byte_fallback=True, fuse_unk=True)
    file["added_tokens"] = file["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(file))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer


def bert(**options):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(**options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trained(tokenizer, trainers.WordPieceTrainer(
        vocab_size=400, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def unigram():
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Strip()])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer = trained(tokenizer, trainers.UnigramTrainer(
        vocab_size=400, special_tokens=["<unk>", "<pad>"], unk_token="<unk>", show_progress=False))
    tokenizer.add_tokens([AddedToken("<mask>", normalized=True)])
    return tokenizer


def mixed():
    """Parts that the others don't have."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=False))
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.StripAccents(), normalizers.Lowercase(), normalizers.NFC()])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.Punctuation("contiguous"),
        pre_tokenizers.Split("t", "merged_with_previous"), pre_tokenizers.Split("q", "merged_with_next"), pre_tokenizers.Split("z", "removed")])
    return trained(tokenizer, trainers.BpeTrainer(vocab_size=300, special_tokens=["<unk>"], limit_alphabet=50, show_progress=False))


def sentencepiece_model(name, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([line for line in CORPUS if line]), model_writer=model, minloglevel=2, num_threads=1, **options)
    (HERE / name).write_bytes(model.getvalue())
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def main():
    encoders = {}
    for name, tokenizer in {
            "gpt2": gpt2(), "roberta": roberta(), "llama3": llama3(), "llama2": llama2(), "bert": bert(),
            "bert_cased": bert(lowercase=False, handle_chinese_chars=False), "unigram": unigram(), "mixed": mixed()}.items():
        tokenizer.save(str(HERE / f"{name}.json"), pretty=False)
        encoders[f"{name}.json"] = lambda text, tokenizer=tokenizer: tokenizer.encode(text).ids
    for name, model in {
            "unigram.model": sentencepiece_model("unigram.model", model_type="unigram", vocab_size=400, hard_vocab_limit=False, user_defined_symbols=["<mask>"]),
            "bpe.model": sentencepiece_model("bpe.model", model_type="bpe", vocab_size=480, byte_fallback=True, character_coverage=0.98,
                                             normalization_rule_name="identity", remove_extra_whitespaces=False),
            "bpe_symbols.model": sentencepiece_model("bpe_symbols.model", model_type="bpe", vocab_size=300, user_defined_symbols=["<mask>", "<sep>"],
                                                     add_dummy_prefix=False, normalization_rule_name="identity"),
            "unigram_bytes.model": sentencepiece_model("unigram_bytes.model", model_type="unigram", vocab_size=500, hard_vocab_limit=False, byte_fallback=True,
                                                       character_coverage=0.98, normalization_rule_name="identity")}.items():
        encoders[name] = lambda text, model=model: model.encode(text)
    with open(HERE / "expected.jsonl", "w", encoding="utf-8") as out:
        for text in texts():
            out.write(json.dumps({"text": text, "ids": {name: encode(text) for name, encode in encoders.items()}}) + "\n")


main()

"""Makes the golden tokens of TestTokenizer with Hugging Face tokenizers 0.23.3 (and numpy, gguf 0.19.0).

    python make_tokens.py QWEN3_TOKENIZER_JSON SMOLLM2_GGUF [QWEN2.5_GGUF]

Writes qwen3-tokenizer.json.gz (the file, minified), texts.json.gz, and tokens-NAME.gz for four tokenizers: per text
the number of tokens and the tokens, all as unsigned varints. smollm, llama3 and gpt2 share SmolLM2's vocabulary and
differ in the pre-tokenizer; llama3 also ignores merges for words that are tokens, as Llama 3 does. The special texts are encoded by qwen3 with its added tokens, the others without any.
"""
import gzip, json, random, sys
from gguf import GGUFReader
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"

CODE = '''import numpy as np
from scipy.optimize import minimize

def pack(n=26, radius=0.09617):
    """Returns centres, radii and their sum."""
    grid = [(0.1 * i, 0.2 * j) for i in range(1, 6)  for j in range(1, 6)]
\tfor k, (x, y) in enumerate(grid):\t# a tab
        if x**2 + y**2 <= 1e-12 or not (0 <= x <= 1): continue
    return np.array(grid), {"sum": 2.635_983, 'it\\'s': "don't"}


if __name__ == "__main__":   
    print(f"{pack()[1]!r:>10}")


'''
GO = 'func (s *Search) Next(ctx context.Context) (*Round, error) {\n\tif err := ctx.Err(); err != nil {\n\t\treturn nil, fmt.Errorf("round %d: %w", s.n+1, err)\n\t}\n\treturn &Round{n: s.n<<1 | 0x7f}, nil\n}\n'
HAND = [
    "", " ", "  ", "\n", "\r\n", "\n\n\n", " \n ", "\t\t x", "a", "Hello, world!", "  leading and trailing  ",
    CODE, GO, CODE.replace("\n", "\r\n"), CODE * 3,
    "I'm sure it's they'll we'd you've He'S DON'T WE'LL 'tis rock'n'roll a'ſ x'ſt 'ﬅ",
    "圆在正方形中的最优排列问题：给定26个圆，求半径之和的最大值。", "日本語のテキスト、ひらがなとカタカナ。ﾊﾝｶｸ", "한국어 문장입니다. \u1112\u1161\u11ab\u1100\u116e\u11a8",
    "Ünïcödé cafe\u0301 café A\u030a Å \u212b n\u0303 q\u0307\u0323 \u1e9b\u0323 d\u0323\u0307", "e" + "\u0301" * 40 + "\u0323" * 3 + "z",
    "👍🏽👩‍👩‍👧‍👦🇩🇪 🧑🏿‍🚀❤️‍🔥 ☃️ ½ ² Ⅷ ① ٣٤٥ १२३ 𝟙𝟚 𐒠", "1 12 123 1234 12345 1234567.890e-12 0xDEADBEEF 3,141,592",
    "a\u00a0\u00a0b\u2003c\u3000d\u2028e\u2029f\u0085g\u200bh\ufeffi\u202fj", "x \n\n  y\r\r\nz \t\n\t", "...!!!??? --- *** === ~~~ ```go\n```\n", "a" * 300, " " * 130 + "b", "\n" * 40,
    "<|im_start|>user\nhi<|im_end|><|endoftext|><think></think>", "Ελληνικά Русский العربية עִבְרִית हिन्दी ไทย ქართული አማርኛ", "\u05d0\u05b7\u05bc\u05c1 \u0627\u0651\u064b \u0f71\u0f74 \u0b47\u0b56 \u0344 \u0340\u0341 \ufb2c \u2126",
    "\x00\x01\x7f\x1b[31m \ufffd \uffff \U0010ffff \ue000 \U000e0041", "MixedCASEWords camelCase snake_case kebab-case UPPER_SNAKE path/to/file.ext user@example.org #tag $VAR %d",
]
SPECIAL = [
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n",
    "e<|im_end|>\u0301", "cafe\u0301<|endoftext|>cafe\u0301", "<|im_start|><|im_start|>", " <|im_end|> <tool_call>\n{}\n</tool_call>", "<|im_start", "|im_end|><|fim_prefix|>x<|fim_suffix|>", "a<think>b</think>c", "<|im_<|im_end|>end|>",
]
ALPHABETS = [
    [chr(c) for c in range(32, 127)], list(" \t\n\r  \n\n\u00a0\u2003\u3000\u2028\u0085\u000b\u000c\u200b"), list("'sStTrReEvVmMlLdDſ' "),
    list("0123456789٣४½²Ⅷ①𝟙〇"), [chr(c) for c in range(0x300, 0x370)], list("aeiouAEOUncsqd가각ᄒ\u1161\u11ab"),
    [chr(c) for c in range(0x4e00, 0x4f00)] + list("ひらカナ한글"), list("😀👍🏽\u200d👩❤\ufe0f🇩🇪🚀"), [chr(c) for c in range(0xa0, 0x250)] + [chr(c) for c in range(0x370, 0x700)],
    [chr(c) for c in range(0x900, 0xe00)] + [chr(c) for c in range(0x1e00, 0x2000)], None,
]

def random_text(rng):
    out, n = "", rng.randint(1, 24)
    while len(out) < n:
        alphabet = rng.choice(ALPHABETS)
        for _ in range(rng.randint(1, 4)):
            if alphabet is None:
                c = rng.randrange(0x110000)
                out += chr(c) if not 0xd800 <= c < 0xe000 else "?"
            else:
                out += rng.choice(alphabet)
    return out

def write(name, data):
    with gzip.GzipFile(name, "wb", mtime=0) as f:
        f.write(data)

def varint(n):
    out = b""
    while n >= 128:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])

def gguf_bpe(path):
    fields = GGUFReader(path).fields
    words = fields["tokenizer.ggml.tokens"].contents()
    merges = [tuple(m.split(" ")) for m in fields["tokenizer.ggml.merges"].contents()]
    kinds = fields["tokenizer.ggml.token_type"].contents()
    return {w: i for i, w in enumerate(words) if kinds[i] == 1}, merges

def main():
    qwen = json.load(open(sys.argv[1]))
    write("qwen3-tokenizer.json.gz", json.dumps(qwen, ensure_ascii=False, separators=(",", ":")).encode())
    if len(sys.argv) > 3:  # Qwen2.5's GGUF file carries the same vocabulary and merges
        vocab, merges = gguf_bpe(sys.argv[3])
        assert vocab == qwen["model"]["vocab"] and merges == [tuple(m) for m in qwen["model"]["merges"]]
    whole = Tokenizer.from_str(json.dumps(qwen))
    bare = Tokenizer.from_str(json.dumps(dict(qwen, added_tokens=[])))

    vocab, merges = gguf_bpe(sys.argv[2])
    def smol(pre, ignore_merges=False):
        t = Tokenizer(models.BPE(vocab=vocab, merges=merges, ignore_merges=ignore_merges))
        t.pre_tokenizer = pre
        return t
    byte_level = lambda regex: pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=regex)
    split = lambda pattern: pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizers = {
        "qwen3": bare, "gpt2": smol(byte_level(True)),
        "smollm": smol(pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)])),
        "llama3": smol(pre_tokenizers.Sequence([split(LLAMA3), byte_level(False)]), ignore_merges=True),
    }
    rng = random.Random(2611)
    plain = HAND + SPECIAL + [random_text(rng) for _ in range(10000)]
    write("texts.json.gz", json.dumps({"plain": plain, "special": SPECIAL}).encode())
    for name, t in tokenizers.items():
        rows = [t.encode(text, add_special_tokens=False).ids for text in plain]
        if name == "qwen3":
            rows += [whole.encode(text, add_special_tokens=False).ids for text in SPECIAL]
        write(f"tokens-{name}.gz", b"".join(b"".join(map(varint, [len(r)] + r)) for r in rows))

main()

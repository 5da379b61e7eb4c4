"""Makes added.json.gz: added tokens of every kind (lstrip, rstrip, single_word, normalized, one the beginning of another) in
the small tokenizer of models/qwen2, and the tokens of Hugging Face tokenizers 0.23.3. Run: python make_added.py
"""
import gzip, itertools, json, random
from tokenizers import Tokenizer

tokenizer = json.load(open("models/qwen2/tokenizer.json"))
tokenizer["added_tokens"] = []
kinds = [("<l>", "lstrip"), ("<r>", "rstrip"), ("<lr>", "lstrip rstrip"), ("word", "single_word"), ("e\u0301", "normalized"),
         ("<s>", ""), ("<s><s>x", ""), ("é!", "normalized lstrip"), ("<u>", "single_word rstrip"), ("  ", "")]
for i, (content, flags) in enumerate(kinds):
    token = {"id": len(tokenizer["model"]["vocab"]) + i, "content": content, "special": i % 2 == 0}
    tokenizer["added_tokens"].append(token | {f: f in flags.split() for f in ("single_word", "lstrip", "rstrip", "normalized")})
pieces = [c for c, _ in kinds] + [" ", "\n", "\t\u00a0", "a", "e", "\u0301", "é", "!", "wordy", "_", "hello", "圆", "1", "<", "s>", "\u0323"]
rng = random.Random(5)
texts = ["".join(p) for p in itertools.product([" ", "a", "é", ""], [c for c, _ in kinds], [" ", "b", "\u0301", ""])]
texts += ["".join(rng.choice(pieces) for _ in range(rng.randint(1, 9))) for _ in range(1500)]
hf = Tokenizer.from_str(json.dumps(tokenizer))
cases = [{"text": t, "tokens": hf.encode(t, add_special_tokens=False).ids} for t in texts]
with gzip.GzipFile("added.json.gz", "wb", mtime=0) as f:
    f.write(json.dumps({"tokenizer": tokenizer, "cases": cases}, separators=(",", ":")).encode())

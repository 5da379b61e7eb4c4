"""Dumps what Hugging Face Transformers computes in fp32 on small random models (README.md says how to run it).

  python3 dump.py FOLDER

Writes into FOLDER, for each case, NAME/config.json and NAME/expected.safetensors, and sampling.json, philox.json,
tokenizer.json. The weights are not written but drawn from numpy's Philox generator by weight(); the Go test draws the
same ones. One case also keeps its model.safetensors as save_pretrained makes it.
"""
import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.numpy import save_file
from transformers import (DynamicCache, LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM, Qwen3Config,
                          Qwen3ForCausalLM, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)

COMMON = dict(max_position_embeddings=32768, bos_token_id=0, eos_token_id=1, attn_implementation="eager")
CASES = {
    "llama": (LlamaForCausalLM, LlamaConfig(
        vocab_size=288, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=32, rms_norm_eps=1e-5, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e5}, **COMMON)),
    "llama-untied": (LlamaForCausalLM, LlamaConfig(
        vocab_size=512, hidden_size=192, intermediate_size=320, num_hidden_layers=3, num_attention_heads=3,
        num_key_value_heads=3, head_dim=64, rms_norm_eps=1e-6, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}, **COMMON)),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(
        vocab_size=1024, hidden_size=256, intermediate_size=416, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, rms_norm_eps=1e-6, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6}, **COMMON)),
    "qwen3": (Qwen3ForCausalLM, Qwen3Config(
        vocab_size=2048, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=2, head_dim=32, rms_norm_eps=1e-6, tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6}, **COMMON)),
    "qwen3-wide": (Qwen3ForCausalLM, Qwen3Config(
        vocab_size=640, hidden_size=96, intermediate_size=224, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=128, rms_norm_eps=1e-6, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 1e6}, **COMMON)),
}
ROWS = [0, 1, 7, 19]  # of 20 tokens: the rows whose logits are kept
STEPS = 12            # latent steps


def weight(seed, index, name, shape):
    """Tensor `index` (in sorted order of names) of a model: 8-bit numbers, exact in fp32, fp16 and bf16. They are the
    draws 1, 2, … of lm.Key{Run: seed, Swarm: index}: the first word of each block of four."""
    counter = np.array([0, 0, index, 0], dtype=np.uint64)  # numpy raises it before the first block
    words = np.random.Philox(key=np.array([seed, 0], dtype=np.uint64), counter=counter).random_raw(4 * int(np.prod(shape)))
    u = (words[::4] >> np.uint64(56)).astype(np.int64) - 128
    if "norm" in name:
        values = 1 + (u >> 1) / 128
    elif name.endswith(".bias"):
        values = u / 512
    else:
        values = u / 1024
    return torch.from_numpy(values.reshape(shape).astype(np.float32))


def build(seed, cls, config):
    model = cls(config).eval().float()
    names = {n: p for n, p in model.named_parameters()}  # a tied head is listed once
    with torch.no_grad():
        for i, name in enumerate(sorted(names)):
            names[name].copy_(weight(seed, i, name, tuple(names[name].shape)))
    return model


def run(model, cache, pos, tokens=None, embeds=None):
    """One forward pass of rows at positions pos, pos+1, … behind cache; returns hidden [T, D] and logits [T, V]."""
    ids = None if tokens is None else torch.tensor([tokens])
    rows = len(tokens) if embeds is None else embeds.shape[0]
    out = model(input_ids=ids, inputs_embeds=None if embeds is None else embeds[None],
                position_ids=torch.arange(pos, pos + rows)[None], past_key_values=cache, use_cache=True,
                output_hidden_states=True)
    return out.hidden_states[-1][0], out.logits[0]


def layers(cache, start=0, end=None):
    """Keys and values of each layer, [T, KVHeads, HeadDim]."""
    return [(layer.keys[0, :, start:end].transpose(0, 1), layer.values[0, :, start:end].transpose(0, 1))
            for layer in cache.layers]


def keep_kv(out, prefix, cache):
    for i, (k, v) in enumerate(layers(cache)):
        out[f"{prefix}.k{i}"], out[f"{prefix}.v{i}"] = k, v


def alignment(model):
    """W_a in row convention (e = h W) by an fp64 solve with LatentMAS's ridge, and gamma (Eq. 2)."""
    w_in = model.get_input_embeddings().weight.double()
    w_out = model.get_output_embeddings().weight.double()
    ridge = 1e-5 * torch.eye(w_in.shape[1], dtype=torch.float64)
    return torch.linalg.solve(w_out.T @ w_out + ridge, w_out.T @ w_in), w_in.norm(dim=1).mean()


def embed(h, w, gamma):
    e = h.double() @ w
    return (gamma * e / e.norm().clamp_min(1e-6)).float()


def think(model, cache, pos, h, w, gamma, steps):
    """Latent steps from hidden state h: inputs [steps, D] and hidden states [steps, D]."""
    inputs, hiddens = [], []
    for step in range(steps):
        e = embed(h, w, gamma)
        hidden, _ = run(model, cache, pos + step, embeds=e[None])
        h = hidden[-1]
        inputs.append(e)
        hiddens.append(h)
    return torch.stack(inputs), torch.stack(hiddens)


class ExactRope(torch.nn.Module):
    """Rotation with angles in fp64: Transformers rounds position × frequency to fp32, 1e-3 rad at 20,000."""

    def __init__(self, config):
        super().__init__()
        dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        theta = config.rope_parameters["rope_theta"]
        self.frequency = theta ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)

    def forward(self, x, position_ids):
        angle = position_ids[0].double()[:, None] * self.frequency
        angle = torch.cat([angle, angle], dim=-1)[None]
        return angle.cos().to(x.dtype), angle.sin().to(x.dtype)


def far(model, tokens, out):
    """The same tokens at high positions, with exact angles."""
    own, model.model.rotary_emb = model.model.rotary_emb, ExactRope(model.config)
    for pos in (4095, 20000):
        cache = DynamicCache(config=model.config)
        out[f"far{pos}.hidden"], _ = run(model, cache, pos, tokens)
        keep_kv(out, f"far{pos}", cache)
    model.model.rotary_emb = own


def rotate(k, shift, theta):
    """Keys [T, H, Dh] moved by shift positions (Eq. 1), in fp64."""
    dim = k.shape[-1]
    angle = shift * theta ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    cos, sin = torch.cat([angle.cos()] * 2), torch.cat([angle.sin()] * 2)
    k = k.double()
    half = torch.cat([-k[..., dim // 2:], k[..., :dim // 2]], dim=-1)
    return (k * cos + half * sin).float()


def summarize(model, gen, w, gamma, out):
    """Eq. 6 on a hand-built cache: problem, three agents behind one of two parents, parents, instruction, then
    eight more tokens; a hole of seven positions stands where a fourth agent was."""
    theta = model.config.rope_parameters["rope_theta"]
    draw = lambda n: torch.randint(2, 288, (n,), generator=gen).tolist()
    prob, parents, focuses = draw(6), [draw(5), draw(8)], [draw(4), draw(3), draw(5)]
    instruction, writing = draw(5), draw(8)
    prob_cache = DynamicCache(config=model.config)
    run(model, prob_cache, 0, prob)
    blocks, inputs = [], []
    for j, focus in enumerate(focuses):
        parent = parents[j % 2]
        cache = DynamicCache(config=model.config)
        run(model, cache, 0, prob)
        run(model, cache, len(prob), parent)
        start = len(prob) + len(parent)
        hidden, _ = run(model, cache, start, focus)
        e, _ = think(model, cache, start + len(focus), hidden[-1], w, gamma, 3)
        inputs.append(e)
        blocks.append((start, layers(cache, start)))
    for parent in parents:
        cache = DynamicCache(config=model.config)
        run(model, cache, 0, prob)
        run(model, cache, len(prob), parent)
        blocks.append((len(prob), layers(cache, len(prob))))
    joined = DynamicCache(config=model.config)
    at, starts = len(prob), []
    pieces = [[(k, v)] for k, v in layers(prob_cache)]
    for i, (start, block) in enumerate(blocks):
        if i == 2:
            at += 7
        starts.append(at)
        for layer, (k, v) in enumerate(block):
            pieces[layer].append((rotate(k, at - start, theta), v))
        at += block[0][0].shape[0]
    for layer, parts in enumerate(pieces):
        k, v = (torch.cat([p[i] for p in parts]).transpose(0, 1)[None] for i in (0, 1))
        joined.update(k, v, layer)
    hidden, logits = run(model, joined, at, instruction)
    more_hidden, more_logits = run(model, joined, at + len(instruction), writing)
    out["sum.prob"], out["sum.instruction"], out["sum.writing"] = map(torch.tensor, (prob, instruction, writing))
    for i, tokens in enumerate(parents):
        out[f"sum.parent{i}"] = torch.tensor(tokens)
    for i, tokens in enumerate(focuses):
        out[f"sum.focus{i}"], out[f"sum.inputs{i}"] = torch.tensor(tokens), inputs[i]
    out["sum.starts"], out["sum.at"] = torch.tensor(starts), torch.tensor([at])
    out["sum.hidden"] = torch.cat([hidden, more_hidden])
    out["sum.logits"] = torch.cat([logits[-1:], more_logits])


@torch.no_grad()
def dump(folder, seed, name, cls, config):
    model, out = build(seed, cls, config), {}
    gen = torch.Generator().manual_seed(seed)
    tokens = torch.randint(2, config.vocab_size, (20,), generator=gen).tolist()
    cache = DynamicCache(config=config)
    hidden, logits = run(model, cache, 0, tokens)
    out["tokens"], out["hidden"], out["logits"] = torch.tensor(tokens), hidden, logits[ROWS]
    keep_kv(out, "near", cache)
    far(model, tokens[:5], out)
    w, gamma = alignment(model)
    e, h = think(model, cache, len(tokens), hidden[-1], w, gamma, STEPS)
    out["gamma"], out["latent.inputs"], out["latent.hidden"] = gamma.float()[None], e, h
    if not config.tie_word_embeddings:
        out["alignment"] = w.float()
    if name != "llama-untied":
        summarize(model, gen, w, gamma, out)
    target = folder / name
    target.mkdir(parents=True, exist_ok=True)
    config.architectures = [cls.__name__]
    config.save_pretrained(target)
    if name == "llama":
        model.save_pretrained(target)
        (target / "generation_config.json").unlink(missing_ok=True)
    arrays = {k: v.int().numpy() if not v.is_floating_point() else v.float().contiguous().numpy() for k, v in out.items()}
    save_file({k: np.ascontiguousarray(a) for k, a in arrays.items()}, target / "expected.safetensors")


def sampling(folder):
    """Probabilities that the warpers leave, in fp64: temperature, top-k, top-p, in generate()'s order."""
    gen = torch.Generator().manual_seed(7)
    cases = []
    for i in range(48):
        logits = torch.randn(1, 40, generator=gen, dtype=torch.float64) * (1 + i % 5)
        logits = (logits * 2).round() / 2 if i % 2 else logits.float().double()  # every other case has many ties
        temperature, k, p = [0.3, 0.7, 1.0, 1.5][i % 4], [0, 1, 5, 20, 100][i % 5], [0.0, 0.5, 0.9, 0.95][(i // 4) % 4]
        scores = TemperatureLogitsWarper(temperature)(None, logits) if temperature != 1.0 else logits
        if k:
            scores = TopKLogitsWarper(k)(None, scores)
        if p:
            scores = TopPLogitsWarper(p)(None, scores)
        cases.append(dict(logits=logits[0].tolist(), temperature=temperature, k=k, p=p,
                          probabilities=scores.softmax(-1)[0].tolist()))
    (folder / "sampling.json").write_text(json.dumps(cases))


def philox(folder):
    """numpy raises the counter before it draws, so the block of counter c follows from c-1."""
    gen, cases = np.random.default_rng(3), []
    for _ in range(20):
        run_, index, replicate, swarm = (int(x) for x in gen.integers(1, 2**63, 4))
        raw = np.random.Philox(key=np.array([run_, 0], dtype=np.uint64),
                               counter=np.array([index - 1, replicate, swarm, 0], dtype=np.uint64)).random_raw(4)
        cases.append(dict(run=run_, index=index, replicate=replicate, swarm=swarm, words=[int(x) for x in raw]))
    (folder / "philox.json").write_text(json.dumps(cases))


def tokenizer(folder):
    """A byte-level tokenizer of 256 bytes and three specials, so that the folders open as models."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    vocab = {c: i for i, c in enumerate(special + alphabet)}
    t = Tokenizer(models.BPE(vocab=vocab, merges=[]))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = decoders.ByteLevel()
    t.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in special])
    t.save(str(folder / "tokenizer.json"))


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for seed, (name, (cls, config)) in enumerate(CASES.items(), start=1):
        dump(folder, seed, name, cls, config)
        print(name, "done", flush=True)
    sampling(folder)
    philox(folder)
    tokenizer(folder)

"""Makes models/: for each architecture one random model twice, as NAME.gguf by gguf-py 0.19.0 and as a folder NAME with
safetensors (qwen3 in two shards), config.json and tokenizer.json. Run: python make_models.py (numpy, gguf)
"""
import json, os, struct
import numpy as np
from gguf import GGMLQuantizationType as Q, GGUFWriter

WIDTH, HEADS, KV, FFN, LAYERS, CONTEXT = 16, 4, 2, 24, 2, 64
TYPES = {"llama": ("F32", Q.F32, np.float32), "qwen2": ("BF16", Q.BF16, None), "qwen3": ("F16", Q.F16, np.float16)}
PARTS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj",
         "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
         "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
         "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
WHOLE = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight"}
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MERGES = [("h", "e"), ("l", "l"), ("he", "ll"), ("Ġ", "w")]
CHATML = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

def byte_alphabet():
    plain = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
    rest = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(rest)}

WORDS = [byte_alphabet()[b] for b in range(256)] + [a + b for a, b in MERGES]
VOCAB = len(WORDS) + len(SPECIAL)

def shapes(arch, dim):
    out = {"token_embd.weight": (VOCAB, WIDTH), "output_norm.weight": (WIDTH,)}
    if arch == "qwen2":
        out["output.weight"] = (VOCAB, WIDTH)
    for i in range(LAYERS):
        block = {"attn_norm.weight": (WIDTH,), "ffn_norm.weight": (WIDTH,), "attn_q.weight": (HEADS * dim, WIDTH),
                 "attn_k.weight": (KV * dim, WIDTH), "attn_v.weight": (KV * dim, WIDTH), "attn_output.weight": (WIDTH, HEADS * dim),
                 "ffn_gate.weight": (FFN, WIDTH), "ffn_up.weight": (FFN, WIDTH), "ffn_down.weight": (WIDTH, FFN)}
        if arch == "qwen2":
            block |= {"attn_q.bias": (HEADS * dim,), "attn_k.bias": (KV * dim,), "attn_v.bias": (KV * dim,)}
        if arch == "qwen3":
            block |= {"attn_q_norm.weight": (dim,), "attn_k_norm.weight": (dim,)}
        out |= {f"blk.{i}.{n}": s for n, s in block.items()}
    return out

def hf_name(name):
    if name in WHOLE:
        return WHOLE[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{PARTS[part]}.{kind}"

def permute(w, heads):  # llama.cpp's reordering of rotary pairs
    return w.reshape(heads, 2, w.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(w.shape)

def bf16(w):
    return (np.ascontiguousarray(w).view(np.uint32) >> 16).astype(np.uint16)

def encode(w, arch):
    return bf16(w) if arch == "qwen2" else w.astype(TYPES[arch][2])

def write_gguf(arch, dim, tensors):
    w = GGUFWriter(f"models/{arch}.gguf", arch)
    w.add_name(f"Tiny {arch}")
    w.add_block_count(LAYERS); w.add_context_length(CONTEXT); w.add_embedding_length(WIDTH); w.add_feed_forward_length(FFN)
    w.add_head_count(HEADS); w.add_head_count_kv(KV); w.add_rope_freq_base(10000.0); w.add_layer_norm_rms_eps(1e-6)
    if arch == "qwen3":
        w.add_key_length(dim); w.add_value_length(dim)
    w.add_tokenizer_model("gpt2"); w.add_tokenizer_pre({"llama": "smollm"}.get(arch, "qwen2"))
    w.add_token_list(WORDS + SPECIAL); w.add_token_types([1] * len(WORDS) + [3] * len(SPECIAL))
    w.add_token_merges([f"{a} {b}" for a, b in MERGES])
    w.add_eos_token_id(VOCAB - 1); w.add_chat_template(CHATML)
    for name, t in tensors.items():
        if arch == "llama" and ("attn_q.weight" in name or "attn_k.weight" in name):
            t = permute(t, HEADS if "attn_q" in name else KV)
        if t.ndim == 1:
            w.add_tensor(name, t)
        elif arch == "qwen2":
            w.add_tensor(name, bf16(t).view(np.uint8), raw_dtype=Q.BF16)
        else:
            w.add_tensor(name, encode(t, arch))
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()

def write_safetensors(path, tensors, arch):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, t in tensors.items():
        raw = encode(t, arch).tobytes()
        header[hf_name(name)] = {"dtype": TYPES[arch][0], "shape": list(t.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    open(path, "wb").write(struct.pack("<Q", len(head)) + head + data)

def write_folder(arch, dim, tensors):
    folder = f"models/{arch}"
    os.makedirs(folder, exist_ok=True)
    if arch == "qwen3":
        names = list(tensors)
        shards = [names[:9], names[9:]]
        files = [f"model-0000{i + 1}-of-00002.safetensors" for i in range(2)]
        for file, shard in zip(files, shards):
            write_safetensors(f"{folder}/{file}", {n: tensors[n] for n in shard}, arch)
        index = {"metadata": {}, "weight_map": {hf_name(n): f for f, s in zip(files, shards) for n in s}}
        json.dump(index, open(f"{folder}/model.safetensors.index.json", "w"))
    else:
        write_safetensors(f"{folder}/model.safetensors", tensors, arch)
    config = {"model_type": arch, "num_hidden_layers": LAYERS, "hidden_size": WIDTH, "num_attention_heads": HEADS,
              "num_key_value_heads": KV, "intermediate_size": FFN, "vocab_size": VOCAB, "max_position_embeddings": CONTEXT,
              "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": arch != "qwen2",
              "eos_token_id": VOCAB - 1, "rope_scaling": None}
    if arch == "qwen3":
        config["head_dim"] = dim
        config["rope_parameters"] = {"rope_type": "default", "rope_theta": config.pop("rope_theta")}
    json.dump(config, open(f"{folder}/config.json", "w"), indent=1)
    pattern = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    first = {"type": "Digits", "individual_digits": True} if arch == "llama" else {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    tokenizer = {"version": "1.0", "normalizer": None if arch == "llama" else {"type": "NFC"},
                 "added_tokens": [{"id": len(WORDS) + i, "content": c, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True} for i, c in enumerate(SPECIAL)],
                 "pre_tokenizer": {"type": "Sequence", "pretokenizers": [first, {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": arch == "llama"}]},
                 "model": {"type": "BPE", "vocab": {w: i for i, w in enumerate(WORDS)}, "merges": [f"{a} {b}" if arch == "llama" else [a, b] for a, b in MERGES]}}
    json.dump(tokenizer, open(f"{folder}/tokenizer.json", "w"))
    json.dump({"chat_template": CHATML}, open(f"{folder}/tokenizer_config.json", "w"))

rng = np.random.default_rng(3)
os.makedirs("models", exist_ok=True)
for arch in TYPES:
    dim = 6 if arch == "qwen3" else WIDTH // HEADS
    tensors = {n: rng.normal(0, 0.1, s).astype(np.float32) for n, s in shapes(arch, dim).items()}
    if arch != "llama":  # values that the smaller type holds exactly
        tensors = {n: ((bf16(t).astype(np.uint32) << 16).view(np.float32) if arch == "qwen2" else t.astype(np.float16).astype(np.float32)) for n, t in tensors.items()}
    write_gguf(arch, dim, tensors)
    write_folder(arch, dim, tensors)

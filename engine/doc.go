// Package engine holds a live search by swarms of latent agents (SwarmEvolve, arXiv 2611.08483) and the objects a
// notebook steps it with: [Search], [Round], [Swarm], [Agent], [Summary], [Program].
//
// Main path: [Open] a run folder → [Search.Next] forms a round → Reason, Filter, Write, Tune, Evaluate, Commit. The
// loop over rounds is [Search.Run]; the same in the background is [Search.Start].
//
// Who owns what: a Search owns its store (the source of truth), its language model and its judge. A Round owns the KV
// blocks of its agents; problem and parent blocks belong to the Search and are shared by rounds. Every object may
// be read from any goroutine at any time, also while a job runs: reads return copies. One call that changes
// something runs at a time; a second is refused with the name of what runs.
//
// The package deliberately does not know notebooks (objects show themselves through SimpleRender), file formats of
// models (engine/lm), how programs are run (engine/judge) or how rows are kept (engine/store).
package engine

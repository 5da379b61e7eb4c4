// Package store keeps one run on disk: a folder with run.db (SQLite), hidden/ (.npy files) and run.lock. It is the
// source of truth of a search: what a write returned without an error survives kill -9 and power loss.
//
// [Create] and [Open] take the folder for this process (the only writer) and give a [Store]; [View] reads it from
// any process, also while it is written. [Store.AddProgram] and [Store.SaveRound] are the main path in, [Reader.Programs]
// and [Reader.Rounds] the main path out. The tables and columns are a contract with Python users: SCHEMA.md.
//
// The store deliberately knows no language model and no stage machine: it keeps rows, checks that they are well
// formed, and leaves what they mean to the engine.
package store

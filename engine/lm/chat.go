package lm

// Chat writes the turns of a conversation in the model's own format.
type Chat struct{}

// Err says why the model's chat format cannot be written, nil when it can.
func (c Chat) Err() error { return nil }

// System begins a conversation with a system turn.
func (c Chat) System(text string) []Token { return nil }

// UserOpen begins a user turn.
func (c Chat) UserOpen() []Token { return nil }

// UserClose ends a user turn.
func (c Chat) UserClose() []Token { return nil }

// AssistantOpen begins the turn that the model writes.
func (c Chat) AssistantOpen() []Token { return nil }

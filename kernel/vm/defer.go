package vm

// executeDeferring runs a frame whose function has deferred calls.
func (t *thread) executeDeferring(fr *frame) {
	if t.guarded(fr) {
		if len(fr.defers) > 0 { // go/ssa leaves RunDefers out where the only defers stand in range-over-func bodies
			fr.runDefers()
			fr.raise()
			fr.reload()
		}
		return
	}
	fr.runDefers()
	fr.raise()
	fr.recovered()
}

// guarded runs a frame's blocks and reports whether they came to their end. What they panicked with is then in the
// frame. Deferred calls of runtime.Goexit run here, since nothing comes behind it.
func (t *thread) guarded(fr *frame) (ended bool) {
	k := t.mark()
	defer func() {
		if ended {
			return
		}
		r := recover()
		fr.panicking, fr.value, fr.goexit = true, r, r == nil
		if t.origin == nil && r != nil {
			t.origin = t.trace()
		}
		t.release(k)
		if fr.goexit {
			fr.runDefers()
		}
	}()
	fr.run(fr.function.blocks[0])
	return true
}

// raise goes on with a panic that nobody recovered.
func (fr *frame) raise() {
	if fr.panicking && !fr.goexit {
		panic(fr.value)
	}
}

// reload takes the results from their variables, which deferred calls may have changed.
func (fr *frame) reload() {
	results := fr.function.ssa.Signature.Results()
	if fr.function.recover != nil && results.Len() > 0 && results.At(0).Name() != "" {
		fr.run(fr.function.recover)
	}
}

// recovered gives the results after a recovered panic: named ones as they are, others zero.
func (fr *frame) recovered() {
	if fr.function.recover != nil {
		fr.run(fr.function.recover)
		return
	}
	types := fr.function.results
	switch len(types) {
	case 0:
		fr.result = slot{}
	case 1:
		fr.result = zeroSlot(types[0])
	default:
		parts := make([]slot, len(types))
		for i, t := range types {
			parts[i] = zeroSlot(t)
		}
		fr.result = tuple(parts...)
	}
}

// runDefers runs the deferred calls, the newest first; a panic in one replaces the panic under way.
func (fr *frame) runDefers() {
	t := fr.thread
	k, unwinding := t.mark(), t.unwinding
	defer func() { t.unwinding = unwinding }()
	for len(fr.defers) > 0 {
		if _, ok := fr.value.(stopped); ok && fr.panicking {
			t.unwinding = true // deferred calls of a stopped execution run
		}
		last := len(fr.defers) - 1
		call := fr.defers[last]
		fr.defers = fr.defers[:last]
		func() {
			ended := false
			defer func() {
				if ended {
					return
				}
				if r := recover(); r != nil {
					fr.panicking, fr.value = true, r
					t.release(k)
				}
			}()
			call(t, fr)
			ended = true
		}()
	}
}

// recoverValue is the builtin recover in fr: it works in a function that a panicking frame calls as a deferred one.
func (fr *frame) recoverValue() any {
	by := fr.deferring
	if by == nil || !by.panicking || by.goexit {
		return nil
	}
	switch by.value.(type) {
	case stopped, *fatal, *Unsupported:
		return nil
	}
	v := by.value
	by.panicking, by.value = false, nil
	fr.thread.origin = nil
	return v
}

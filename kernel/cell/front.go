package cell

import (
	"go/types"
	"sync"
)

// front is what both engines share: the names of the session and the questions about them.
type front struct {
	mu    sync.Mutex // guards scope
	scope *scope
}

// Check reports what is wrong with a cell without running it.
func (f *front) Check(code string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err := f.scope.check(code, 0)
	return err
}

// Vars lists the session's variables.
func (f *front) Vars() []Var {
	f.mu.Lock()
	defer f.mu.Unlock()
	var vars []Var
	for _, name := range f.scope.order {
		if v, ok := f.scope.objects[name].(*types.Var); ok {
			vars = append(vars, Var{name, types.TypeString(v.Type(), shortNames)})
		}
	}
	return vars
}

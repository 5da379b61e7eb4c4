package display

import (
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
)

// Publisher is where displays go: the session's connection to its notebook. Its methods are safe for concurrent use.
type Publisher interface {
	// Publish shows d as a new output of the running cell, or replaces every output with d's display id when update is set.
	Publish(d Data, update bool) error
	// Clear removes the cell's outputs, with wait only when the next one comes.
	Clear(wait bool) error
}

// connected is the process's publisher. A process has one notebook session, so package state is the honest form.
var connected atomic.Pointer[Publisher]

var lastID atomic.Uint64

// ErrNoNotebook is returned when nothing is connected that could show a display.
var ErrNoNotebook = errors.New("display: no notebook is connected")

// Connect makes p the destination of the process's displays; nil disconnects.
func Connect(p Publisher) {
	if p == nil {
		connected.Store(nil)
		return
	}
	connected.Store(&p)
}

func publisher() (Publisher, error) {
	p := connected.Load()
	if p == nil {
		return nil, ErrNoNotebook
	}
	return *p, nil
}

// DisplayID names one display on the page.
type DisplayID string

// Show displays v, anything that Auto takes, as a new output and returns its id.
func Show(v interface{}) (DisplayID, error) {
	id := DisplayID(fmt.Sprintf("skep-%d", lastID.Add(1)))
	return id, id.publish(v, false)
}

// Update replaces the display in place, wherever it is shown.
func (id DisplayID) Update(v interface{}) error { return id.publish(v, true) }

func (id DisplayID) publish(v interface{}, update bool) error {
	p, err := publisher()
	if err != nil {
		return err
	}
	d, err := Auto(v)
	if err != nil {
		return err
	}
	d.Transient = maps.Clone(d.Transient)
	if d.Transient == nil {
		d.Transient = MIMEMap{}
	}
	d.Transient["display_id"] = string(id)
	return p.Publish(d, update)
}

// Display shows d as a new output. Cells have it predeclared as Display.
func Display(d Data) error {
	p, err := publisher()
	if err != nil {
		return err
	}
	return p.Publish(d, false)
}

// Clear removes the running cell's outputs; with wait they stay until the next output comes, which avoids flicker.
func Clear(wait bool) error {
	p, err := publisher()
	if err != nil {
		return err
	}
	return p.Clear(wait)
}
